import { z } from "zod";

/** Body of a request to unmount. */
export const unmountBody = z.strictObject({
  lazy: z
    .boolean()
    .default(false)
    .describe("Also while files are open: it disappears now, and ends with the last of them"),
});

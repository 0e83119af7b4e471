import { z } from "zod";

/** Path of a mount of the secrets store. */
export const mountPath = z.string().regex(/^[^/\s][^\s]*[^/\s]$|^[^/\s]$/, {
  message: "expected a mount path without a slash at either end",
});

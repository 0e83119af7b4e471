import { z } from "zod";

/** Name of an entry of the configuration. It is used in file names, URLs and command lines. */
const ENTRY_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

export const entryName = z.string().regex(ENTRY_NAME, {
  message: "expected letters, digits, dots, dashes and underscores (at most 100)",
});

import { z } from "zod";

/** Path of a socket that the daemon opens. A relative path would depend on the folder in which the daemon was started. */
export const ownSocketPath = z
  .string()
  .regex(/^(?:~\/|\/).*[^/]$/, { message: "expected a path from / or ~/" });

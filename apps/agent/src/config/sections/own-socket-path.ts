import { z } from "zod";

/** Path of a socket, or on Windows name of a pipe. A relative path would depend on the folder in which the daemon was started. */
export const ownSocketPath = z
  .string()
  .regex(/^(?:(?:~\/|\/).*[^/]|\\\\\.\\pipe\\[^\\]+)$/, { message: "expected a path from / or ~/" });

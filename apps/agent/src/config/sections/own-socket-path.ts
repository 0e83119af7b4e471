import { z } from "zod";

/** Path of a socket or folder of the daemon. A relative path would depend on the folder in which the daemon was started. */
export const ownSocketPath = z
  .string()
  .regex(/^(?:~\/|\/).*[^/]$/, { message: "expected a path from / or ~/" });

/** As {@link ownSocketPath}, or the name of a pipe, which only Windows has. Other systems refuse it when it is opened. */
export const ownSocketOrPipe = z
  .string()
  .regex(/^(?:(?:~\/|\/).*[^/]|\\\\\.\\pipe\\[^\\]+)$/, { message: "expected a path from / or ~/" });

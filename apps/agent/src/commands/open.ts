import { requestOpenLink } from "../web/open-link.ts";
import type { RunCommand } from "./command.ts";
import { hostOf } from "./context.ts";

/** Asks the running daemon for a link into its web UI. */
export const run: RunCommand = async (invocation) => {
  process.stdout.write(`${await requestOpenLink(hostOf(invocation).places.runtime)}\n`);
  return 0;
};

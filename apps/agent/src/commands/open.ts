import { printLine } from "@devplat/base/terminal";
import { loadConfig } from "../config/load.ts";
import { apiSocketPath } from "../local-api/places.ts";
import { requestOpenLink } from "../local-api/open-link.ts";
import type { RunCommand } from "./command.ts";
import { hostOf } from "./context.ts";

/** Asks the running daemon for a link into its web UI. */
export const run: RunCommand = async (invocation) => {
  const { places } = hostOf(invocation);
  // The daemon runs with a configuration that was good; one that has been broken since does not matter here.
  const loaded = await loadConfig(places, invocation.flags.config).catch(() => undefined);
  const socketPath = apiSocketPath(places, loaded?.config.api);
  printLine(await requestOpenLink(places.runtime, socketPath));
  return 0;
};

import type { RunCommand } from "./command.ts";
import { preferPeers } from "./peer-action.ts";

/** Opens a web address in front of the user: on the peers, else here. */
export const run: RunCommand = (invocation) =>
  preferPeers(invocation, "browse", new Map([["url", invocation.positionals[0] ?? ""]]));

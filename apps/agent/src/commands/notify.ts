import type { RunCommand } from "./command.ts";
import { preferPeers } from "./peer-action.ts";

/** Raises a notification in front of the user: on the peers, else here. */
export const run: RunCommand = (invocation) => {
  const [level = "", title = "", body = ""] = invocation.positionals;
  const actionUrl = invocation.options["action-url"];
  const fields = new Map([
    ["level", level],
    ["title", title],
    ["body", body],
    ["action_url", typeof actionUrl === "string" ? actionUrl : ""],
  ]);
  return preferPeers(invocation, "notify", fields);
};

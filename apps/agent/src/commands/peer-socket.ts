import { printResult } from "@devplat/cli";
import { printLine } from "@devplat/base/terminal";
import type { RunCommand } from "./common/command.ts";
import { openContext } from "./common/context.ts";
import { DaemonRequests } from "./common/daemon-request.ts";

const PATH = "/api/v1/peer-socket";
/** A store that is slow to revoke a token, in milliseconds. */
const REVOKE_TIMEOUT_MS = 60_000;

/** Lets a host that waits behind the peer socket have a token. */
export const allow: RunCommand = act("allowed", "The host gets its token when it asks again, in a moment.", {
  path: `${PATH}/consent`,
  body: { allowed: true },
});

/** Refuses the token that a host behind the peer socket waits for. */
export const refuse: RunCommand = act("refused", "No token is lent for 10 minutes.", {
  path: `${PATH}/consent`,
  body: { allowed: false },
});

/** Revokes the tokens that are lent over the peer socket. */
export const revoke: RunCommand = act("revoked", "No token is lent any more.", { path: `${PATH}/revoke` });

/** @param request of the daemon's API */
function act(
  outcome: string,
  text: string,
  { path, body }: { readonly path: string; readonly body?: object },
): RunCommand {
  return async (invocation) => {
    const { host, loaded } = await openContext(invocation);
    const { dryRun } = invocation.flags;
    if (!dryRun) {
      const requests = new DaemonRequests(host, loaded.config);
      await requests.change(path, { timeoutMs: REVOKE_TIMEOUT_MS, ...(body !== undefined && { body }) });
    }
    const shown = dryRun ? `would be ${outcome}` : outcome;
    printResult(invocation.options, { outcome: shown }, () => printLine(dryRun ? shown : text));
    return 0;
  };
}

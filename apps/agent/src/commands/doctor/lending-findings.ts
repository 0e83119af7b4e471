import { exists } from "@devplat/base";
import type { Findings, Outcome } from "@devplat/cli/findings";
import type { VaultClient } from "@devplat/secret-store";
import { remotesPath } from "../../assemble/forward-places.ts";
import type { StoreParts } from "../../assemble/store.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { Host } from "../../host.ts";

/** Path of the store at which a token makes a child token. */
const CREATE = "auth/token/create";
/** Capabilities that allow it. */
const ENOUGH: ReadonlySet<string> = new Set(["update", "root", "sudo"]);

/** Checks whether the signed-in token may make child tokens, where other hosts can borrow one. */
export async function examineLending(
  { places }: Host,
  { config: { api } }: LoadedConfig,
  { tokens, signIn }: Pick<StoreParts, "tokens" | "signIn">,
  findings: Findings,
  signal: AbortSignal,
): Promise<void> {
  const { peer } = api;
  const lends = (peer.enabled ?? api.enabled) && peer.lend === "child" && peer.offers.includes("token");
  if (tokens === undefined || (!lends && !(await exists(remotesPath(places))))) return;
  // A host that borrows itself need not lend.
  if (signIn.state().source === "peer") return;
  await findings.attempt("lent tokens", () => childTokenFinding(tokens.client, signal));
}

async function childTokenFinding(client: VaultClient, signal: AbortSignal): Promise<Outcome> {
  const response = await client.request({
    method: "POST",
    path: "sys/capabilities-self",
    body: JSON.stringify({ paths: [CREATE] }),
    repeatable: true,
    signal,
  });
  const capabilities = response.get("data").get(CREATE).strings();
  if (capabilities.some((each) => ENOUGH.has(each))) return `the store allows ${CREATE}`;
  return {
    warning: `no token is lent to other hosts, because the store does not allow update on ${CREATE}. Add to a policy: path "${CREATE}" { capabilities = ["update"] }, or set 'lend: own'`,
  };
}

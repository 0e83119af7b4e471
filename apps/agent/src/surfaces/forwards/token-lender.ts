import type { RemoteEntry } from "./file/remote-entry.ts";
import { DEFAULT_TOKEN_TTL_MS, type ChildTokens, type LendSettings } from "./tokens/child-tokens.ts";

/** Lends store tokens to remote hosts. Undefined where the store works without a token: then nothing is lent. */
export type TokenLender = Pick<ChildTokens, "lend" | "revoke" | "status">;

/** The name under which a remote host borrows. */
export function borrowerOf({ host }: Pick<RemoteEntry, "host">): string {
  return host.toLowerCase();
}

/** The settings under which a remote host borrows. */
export function lendSettings(entry: RemoteEntry): LendSettings {
  return {
    lend: entry.lend ?? "child",
    policies: entry.policies,
    policiesStrict: entry.policies_strict ?? false,
    ttlMs: entry.token_ttl ?? DEFAULT_TOKEN_TTL_MS,
  };
}

import type { Store } from "../store.ts";
import { vaultApps } from "./apps.ts";
import { vaultAudit } from "./audit.ts";
import { vaultCachedRepositories } from "./cached-repositories.ts";
import type { VaultKv } from "./kv.ts";
import { vaultLeases } from "./leases.ts";
import { vaultOneTime } from "./one-time.ts";
import { vaultSessions } from "./sessions.ts";
import { vaultTokens } from "./tokens.ts";
import { vaultUsers } from "./users.ts";

/**
 * The store in a KV v2 engine of Vault, which encrypts what it stores.
 *
 * @param close ends the connections, and the renewal of the token
 */
export function vaultStore(kv: VaultKv, close: () => Promise<void>): Store {
  return {
    cachedRepositories: vaultCachedRepositories(kv),
    users: vaultUsers(kv),
    sessions: vaultSessions(kv),
    tokens: vaultTokens(kv),
    apps: vaultApps(kv),
    oneTime: vaultOneTime(kv),
    leases: vaultLeases(kv),
    audit: vaultAudit(kv),
    // Nothing is encrypted with a key of this service.
    rekey: () => Promise.resolve(0),
    async ping() {
      await kv.read("form");
    },
    close,
  };
}

import type { InstanceStore } from "../coordination-store.ts";
import type { Store } from "../store.ts";
import { vaultApps } from "./apps.ts";
import { vaultAudit } from "./audit.ts";
import { vaultCachedRepositories } from "./cached-repositories.ts";
import { vaultChanges } from "./coordination/changes.ts";
import { vaultEpochs } from "./coordination/epochs.ts";
import { FORM } from "./form.ts";
import type { VaultKv } from "./kv.ts";
import { vaultLeases } from "./coordination/leases.ts";
import { vaultManifestPointers } from "./coordination/manifest-pointers.ts";
import { vaultOneTime } from "./one-time.ts";
import { vaultSessions } from "./sessions.ts";
import { vaultSharedFetches } from "./coordination/shared-fetches.ts";
import { vaultTokens } from "./tokens.ts";
import { vaultUsers } from "./users.ts";

/**
 * The store in a KV v2 engine of Vault, which encrypts what it stores.
 *
 * @param close ends the connections, and the renewal of the token
 */
export function vaultStore(kv: VaultKv, instances: InstanceStore, close: () => Promise<void>): Store {
  return {
    cachedRepositories: vaultCachedRepositories(kv),
    users: vaultUsers(kv),
    sessions: vaultSessions(kv),
    tokens: vaultTokens(kv),
    apps: vaultApps(kv),
    oneTime: vaultOneTime(kv),
    leases: vaultLeases(kv),
    epochs: vaultEpochs(kv),
    changes: vaultChanges(kv),
    instances,
    sharedFetches: vaultSharedFetches(kv),
    manifestPointers: vaultManifestPointers(kv),
    audit: vaultAudit(kv),
    // Nothing is encrypted with a key of this service.
    rekey: () => Promise.resolve(0),
    async ping() {
      await kv.read(FORM);
    },
    close,
  };
}

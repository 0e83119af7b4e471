import type { Store } from "../store.ts";
import { VaultApps } from "./apps.ts";
import { VaultAudit } from "./audit.ts";
import { VaultCachedRepositories } from "./cached-repositories.ts";
import type { VaultKv } from "./kv.ts";
import { VaultLeases } from "./leases.ts";
import { VaultOneTime } from "./one-time.ts";
import { VaultSessions } from "./sessions.ts";
import { VaultTokens } from "./tokens.ts";
import { VaultUsers } from "./users.ts";

/** The store in a KV v2 engine of Vault, which encrypts what it stores. */
export class VaultStore implements Store {
  readonly cachedRepositories: VaultCachedRepositories;
  readonly users: VaultUsers;
  readonly sessions: VaultSessions;
  readonly tokens: VaultTokens;
  readonly apps: VaultApps;
  readonly oneTime: VaultOneTime;
  readonly leases: VaultLeases;
  readonly audit: VaultAudit;
  readonly #kv: VaultKv;
  readonly #close: () => Promise<void>;

  /** @param close of the connections, and what keeps the token alive */
  constructor(kv: VaultKv, close: () => Promise<void>) {
    this.#kv = kv;
    this.#close = close;
    this.cachedRepositories = new VaultCachedRepositories(kv);
    this.users = new VaultUsers(kv);
    this.sessions = new VaultSessions(kv);
    this.tokens = new VaultTokens(kv);
    this.apps = new VaultApps(kv);
    this.oneTime = new VaultOneTime(kv);
    this.leases = new VaultLeases(kv);
    this.audit = new VaultAudit(kv);
  }

  /** Nothing here is under a key of ours. */
  async rekey(): Promise<number> {
    return 0;
  }

  async ping(): Promise<void> {
    await this.#kv.read("form");
  }

  async close(): Promise<void> {
    await this.#close();
  }
}

import { sql, type Kysely } from "kysely";
import { asked } from "./asked.ts";
import type { SecretBox } from "../secret-box.ts";
import type { Store } from "../store.ts";
import { SqlApps } from "./apps.ts";
import { SqlAudit } from "./audit.ts";
import { SqlCachedRepositories } from "./cached-repositories.ts";
import { SqlLeases } from "./leases.ts";
import { SqlOneTime } from "./one-time.ts";
import { rekeyDatabase } from "./rekey.ts";
import { SqlSessions } from "./sessions.ts";
import type { Tables } from "./tables.ts";
import { SqlTokens } from "./tokens.ts";
import { SqlUsers } from "./users.ts";

export interface SqlStoreOptions {
  /** Migrated already. Closed by {@link SqlStore.close}. */
  readonly db: Kysely<Tables>;
  readonly box: SecretBox;
  /** Whether an error of the driver says that a unique key exists already. */
  readonly isUniqueViolation: (error: unknown) => boolean;
}

/** The store in a SQL database. */
export class SqlStore implements Store {
  readonly cachedRepositories: SqlCachedRepositories;
  readonly users: SqlUsers;
  readonly sessions: SqlSessions;
  readonly tokens: SqlTokens;
  readonly apps: SqlApps;
  readonly oneTime: SqlOneTime;
  readonly leases: SqlLeases;
  readonly audit: SqlAudit;
  readonly #db: Kysely<Tables>;
  readonly #box: SecretBox;

  constructor({ db, box, isUniqueViolation }: SqlStoreOptions) {
    this.#db = db;
    this.#box = box;
    this.cachedRepositories = new SqlCachedRepositories(db, isUniqueViolation);
    this.users = new SqlUsers(db, box, isUniqueViolation);
    this.sessions = new SqlSessions(db);
    this.tokens = new SqlTokens(db);
    this.apps = new SqlApps(db, box, isUniqueViolation);
    this.oneTime = new SqlOneTime(db, box);
    this.leases = new SqlLeases(db);
    this.audit = new SqlAudit(db);
  }

  async rekey(progress: (done: number, total: number) => void): Promise<number> {
    return rekeyDatabase(this.#db, this.#box, progress);
  }

  async ping(): Promise<void> {
    await asked(async () => sql`SELECT 1`.execute(this.#db));
  }

  async close(): Promise<void> {
    await this.#db.destroy();
  }
}

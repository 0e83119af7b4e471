import { sql, type Kysely } from "kysely";
import { guarded, withDatabaseErrors } from "./database-errors.ts";
import type { SecretBox } from "../secret-box.ts";
import type { Store } from "../store.ts";
import { sqlApps } from "./apps.ts";
import { sqlAudit } from "./audit.ts";
import { sqlCachedRepositories } from "./cached-repositories.ts";
import { sqlLeases } from "./leases.ts";
import { sqlOneTime } from "./one-time.ts";
import { sqlSessions } from "./sessions.ts";
import type { Tables } from "./tables.ts";
import { sqlTokens } from "./tokens.ts";
import { sqlUsers } from "./users.ts";

export interface SqlStoreOptions {
  /** Migrated already. Closed by {@link Store.close}. */
  readonly db: Kysely<Tables>;
  readonly box: SecretBox;
  /** Whether an error of the driver means that a unique key exists already. */
  readonly isUniqueViolation: (error: unknown) => boolean;
}

/** The store in a SQL database. */
export function sqlStore({ db, box, isUniqueViolation }: SqlStoreOptions): Store {
  return {
    cachedRepositories: guarded(sqlCachedRepositories(db, isUniqueViolation)),
    users: guarded(sqlUsers(db, box, isUniqueViolation)),
    sessions: guarded(sqlSessions(db)),
    tokens: guarded(sqlTokens(db)),
    apps: guarded(sqlApps(db, box, isUniqueViolation)),
    oneTime: guarded(sqlOneTime(db, box)),
    leases: guarded(sqlLeases(db)),
    audit: guarded(sqlAudit(db)),

    rekey: async (progress) => {
      const { rekeyDatabase } = await import("./rekey.ts");
      return rekeyDatabase(db, box, progress);
    },
    async ping() {
      await withDatabaseErrors(async () => sql`SELECT 1`.execute(db));
    },
    close: async () => db.destroy(),
  };
}

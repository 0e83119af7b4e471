import { sql, type Kysely } from "kysely";
import { withDatabaseErrors } from "./database-errors.ts";
import type { SecretBox } from "../secret-box.ts";
import type { Store } from "../store.ts";
import { sqlApps } from "./apps.ts";
import { sqlAudit } from "./audit.ts";
import { sqlCachedRepositories } from "./cached-repositories.ts";
import { sqlChanges } from "./coordination/changes.ts";
import { sqlEpochs } from "./coordination/epochs.ts";
import { sqlLeases } from "./coordination/leases.ts";
import { sqlOneTime } from "./one-time.ts";
import { sqlSessions } from "./sessions.ts";
import { lateMethods, wrapMethods } from "../wrapped.ts";
import { RestoreFence } from "../restore-fence.ts";
import type { SqlSpecifics } from "./specifics.ts";
import type { Tables } from "../rows/tables.ts";
import { sqlTokens } from "./tokens.ts";
import { sqlUsers } from "./users.ts";

export interface SqlStoreOptions {
  /** Migrated already. Closed by {@link Store.close}. */
  readonly db: Kysely<Tables>;
  readonly box: SecretBox;
  readonly specifics: SqlSpecifics;
}

/** The store in a SQL database. */
export function sqlStore({ db, box, specifics }: SqlStoreOptions): Store {
  const { isUniqueViolation } = specifics;
  const fence = new RestoreFence();
  const guarded = <Part extends object>(part: Part): Part =>
    wrapMethods(part, async (run) =>
      withDatabaseErrors(async () => {
        await fence.pass();
        return run();
      }),
    );
  return {
    cachedRepositories: guarded(sqlCachedRepositories(db, specifics)),
    users: guarded(sqlUsers(db, box, isUniqueViolation)),
    sessions: guarded(sqlSessions(db)),
    tokens: guarded(sqlTokens(db)),
    apps: guarded(sqlApps(db, box, isUniqueViolation)),
    oneTime: guarded(sqlOneTime(db, box)),
    leases: guarded(sqlLeases(db, specifics)),
    epochs: guarded(sqlEpochs(db, specifics)),
    changes: guarded(sqlChanges(db, specifics)),
    instances: fence.instances(
      wrapMethods(
        lateMethods(["register", "report", "putFigures", "list", "remove", "removeSilent"], async () => {
          const { sqlInstances } = await import("./coordination/instances.ts");
          return sqlInstances(db, specifics);
        }),
        withDatabaseErrors,
      ),
    ),
    sharedFetches: guarded(
      lateMethods(["begin", "progress", "end", "find", "markAwaited", "deleteEnded"], async () => {
        const { sqlSharedFetches } = await import("./coordination/shared-fetches.ts");
        return sqlSharedFetches(db, specifics);
      }),
    ),
    manifestPointers: guarded(
      lateMethods(["get", "replace"], async () => {
        const { sqlManifestPointers } = await import("./coordination/manifest-pointers.ts");
        return sqlManifestPointers(db);
      }),
    ),
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

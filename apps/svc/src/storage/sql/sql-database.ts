import type { Kysely } from "kysely";
import { SvcError } from "../../errors.ts";
import type { Database } from "../database.ts";
import { refuseAhead } from "../migration-state.ts";
import { SecretBox } from "../secret-box.ts";
import { migrate, migrationState } from "./migrations.ts";
import { unknownKeys } from "./rekey.ts";
import { sqlStore } from "./sql-store.ts";
import type { SqlSpecifics } from "./specifics.ts";
import type { Tables } from "../rows/tables.ts";

export interface SqlDatabaseOptions {
  readonly db: Kysely<Tables>;
  /** Opens a connection for statements that may take long; undefined: `db` is one. */
  readonly openForMigration?: () => Promise<Kysely<Tables>>;
  readonly specifics: SqlSpecifics;
}

/** A database that kysely speaks to. */
export function sqlDatabase({ db, openForMigration, specifics }: SqlDatabaseOptions): Database {
  const patiently = async <T>(run: (patient: Kysely<Tables>) => Promise<T>): Promise<T> => {
    if (openForMigration === undefined) return run(db);
    const patient = await openForMigration();
    try {
      return await run(patient);
    } finally {
      await patient.destroy();
    }
  };
  return {
    state: async () => migrationState(db),

    migrate: async () => patiently(migrate),
    encryptsSecrets: false,
    // The start does not load the code of backups. Statements are short, but the transaction may be idle while the backup is written.
    readContent: async (use) => {
      const { readContent } = await import("./content.ts");
      return patiently(async (patient) => readContent(patient, use));
    },
    // It counts all rows.
    refuseReplacement: async (replace) =>
      patiently(async (patient) => {
        const { refuseReplacement } = await import("./content.ts");
        const state = await migrationState(patient);
        refuseAhead(state);
        await refuseReplacement(patient, specifics, replace, state.applied);
      }),
    replaceContent: async (content) => {
      const { replaceContent } = await import("./content.ts");
      return patiently(async (patient) => {
        await migrate(patient);
        return replaceContent(patient, specifics, content);
      });
    },

    async store(keys) {
      const { current, previous } = await keys();
      const box = new SecretBox(current, previous);
      // A start that is refused is better than a secret that cannot be used hours later.
      const unknown = await unknownKeys(db, box);
      if (unknown.length > 0) {
        throw new SvcError(
          "encryption_key",
          `The database holds secrets that were encrypted with another key (id ${unknown.join(", ")})`,
          { hint: "Set SVC_ENCRYPTION_KEY, or SVC_ENCRYPTION_KEY_PREVIOUS, to that key." },
        );
      }
      return sqlStore({ db, box, specifics });
    },

    close: async () => db.destroy(),
  };
}

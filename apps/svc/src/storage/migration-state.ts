import { SvcError } from "../errors.ts";

/** Migrations of a database, compared with those of this program. */
export interface MigrationState {
  readonly applied: readonly string[];
  readonly pending: readonly string[];
  /** Applied by a newer program; this one does not know them. */
  readonly unknown: readonly string[];
}

/** @throws SvcError `database_ahead` or `database_behind` unless this program can use the database */
export function requireCurrent(state: MigrationState): void {
  refuseAhead(state);
  if (state.pending.length > 0) {
    throw new SvcError("database_behind", `The database lacks ${state.pending.length} migration(s)`, {
      hint: "Run 'svc migrate', or start with 'svc serve --migrate'.",
    });
  }
}

/** End of the name of a migration that older programs can live with. */
const ADDITIVE = "_additive";

/**
 * Refuses a database that a newer program changed, unless this program can live with all changes: instances of both
 * versions may run during an upgrade.
 *
 * @throws SvcError `database_ahead`
 */
export function refuseAhead(state: MigrationState): void {
  if (unusable(state).length === 0) return;
  throw new SvcError(
    "database_ahead",
    `The database was migrated by a newer version of this program (unknown: ${unusable(state).join(", ")})`,
    {
      hint:
        "Start that version, or restore a backup from before the upgrade into an empty database: " +
        "move the file of SQLite away, or use a new database of Postgres or another vault.prefix.",
    },
  );
}

/** Migrations of a newer program that this one cannot live with. */
export function unusable({ unknown }: MigrationState): readonly string[] {
  return unknown.filter((name) => !name.endsWith(ADDITIVE));
}

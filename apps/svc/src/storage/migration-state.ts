import { SvcError } from "../errors.ts";

/** Migrations of a database, compared with those of this program. */
export interface MigrationState {
  readonly applied: readonly string[];
  readonly pending: readonly string[];
  /** Applied by a newer program; this one does not know them. */
  readonly unknown: readonly string[];
}

/** @throws SvcError `database_ahead` or `database_behind` unless the database is exactly at this program's state */
export function requireCurrent(state: MigrationState): void {
  refuseAhead(state);
  if (state.pending.length > 0) {
    throw new SvcError("database_behind", `The database lacks ${state.pending.length} migration(s)`, {
      hint: "Run 'svc migrate', or start with 'svc serve --migrate'.",
    });
  }
}

/** @throws SvcError `database_ahead` */
export function refuseAhead(state: MigrationState): void {
  if (state.unknown.length === 0) return;
  throw new SvcError(
    "database_ahead",
    `The database was migrated by a newer version of this program (unknown: ${state.unknown.join(", ")})`,
    { hint: "Start that version, or restore a backup from before the migration." },
  );
}

import { systemCode } from "@devplat/base";
import { SvcError } from "../../errors.ts";

interface Reason {
  readonly text: string;
  readonly hint: string;
  /** Whether it may end without a change by an administrator. */
  readonly passes: boolean;
}

const LOCKED: Reason = {
  text: "it may be locked by another command, such as 'svc restore' or 'svc migrate'",
  hint: "Try again when that command has ended.",
  passes: true,
};
const DENIED: Reason = {
  text: "permission denied",
  hint: "Give the user of database.dsn (SVC_DATABASE_DSN) all rights on the tables, or make it their owner.",
  passes: false,
};
const NOT_WRITABLE: Reason = {
  text: "permission denied: the file is read-only for this user",
  hint: "Run the command as the user of the service, and check the owner of the data folder.",
  passes: false,
};
const DAMAGED: Reason = {
  text: "the database is damaged",
  hint: "Stop the service, move the file away with its -wal and -shm, and restore a backup: svc restore FILE.",
  passes: false,
};

/** By code of Postgres (postgresql.org/docs/current/errcodes-appendix.html). */
const POSTGRES_REASONS: Readonly<Record<string, Reason>> = {
  "42501": DENIED,
  "57014": LOCKED,
  "55P03": LOCKED,
};
/** By code of SQLite, in the lowest byte of all its kinds (sqlite.org/rescode.html). */
const SQLITE_REASONS: Readonly<Record<number, Reason>> = {
  3: NOT_WRITABLE,
  5: LOCKED,
  6: LOCKED,
  8: NOT_WRITABLE,
  11: DAMAGED,
  26: DAMAGED,
};

/** Reason of an error of the driver that an administrator can do something about. */
export function databaseReason(error: unknown): Reason | undefined {
  if (error instanceof Error && "errcode" in error) return SQLITE_REASONS[Number(error.errcode) & 0xff];
  return POSTGRES_REASONS[systemCode(error) ?? ""];
}

/** Runs queries. Errors of the driver become the error of the store's contract. */
export async function withDatabaseErrors<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof SvcError) throw error;
    const reason = databaseReason(error);
    const text = reason === undefined ? "" : `: ${reason.text}`;
    throw new SvcError("database_unavailable", `The database did not answer a query${text}`, {
      ...(reason?.passes !== false && { remedy: "retry" as const }),
      ...(reason !== undefined && { hint: reason.hint }),
      cause: error,
    });
  }
}

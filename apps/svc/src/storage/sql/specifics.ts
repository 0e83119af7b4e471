import type { Kysely, RawBuilder } from "kysely";
import type { ChangeTopic } from "../coordination-store.ts";
import type { Tables } from "../rows/tables.ts";

/** Parts of the store that differ between the SQL databases. */
export interface SqlSpecifics {
  /** Whether an error of the driver means that a unique key exists already. */
  readonly isUniqueViolation: (error: unknown) => boolean;
  /** Clock of the database: milliseconds since the epoch, as an expression of SQL. */
  readonly now: RawBuilder<number>;
  /**
   * Waits for the transactions that write these tables, and keeps others from writing them until this transaction ends.
   * Undefined: a transaction that writes is the only one anyway.
   */
  readonly lockTables:
    | ((transaction: Kysely<Tables>, names: readonly (keyof Tables)[]) => Promise<void>)
    | undefined;
  /** Reports a change to listening instances when the transaction is committed. Undefined: the database cannot do that. */
  readonly notify: ((db: Kysely<Tables>, topic: ChangeTopic) => Promise<void>) | undefined;
  /** See ChangeStore.listen. */
  readonly listen: ((onChange: () => void, signal: AbortSignal) => Promise<void>) | undefined;
}

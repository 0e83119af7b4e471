import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { Semaphore, type Release } from "@devplat/base/semaphore";
import { BoundedMap } from "@devplat/base/bounded-map";
import {
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  type TransactionSettings,
} from "kysely";

/** Prepared statements kept; kysely makes the same text for the same query, and preparing costs more than running. */
const MAX_STATEMENTS = 500;
/** Milliseconds to wait for another process's write lock before `database is locked`: a migration may take seconds. */
const BUSY_TIMEOUT_MS = 5000;
/** Milliseconds between two tries for that lock. */
const BUSY_POLL_MS = 10;
/** SQLITE_BUSY (sqlite.org/rescode.html). */
const SQLITE_BUSY = 5;

/** kysely over the SQLite of Node. @param path of the database file, or `:memory:` */
export function nodeSqliteDialect(path: string): Dialect {
  return {
    createDriver: () => new NodeSqliteDriver(path),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => new TransactionalDdlAdapter(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  };
}

/** SQLite's DDL is transactional, and kysely does not use that. So a migration is all or nothing, and one at a time. */
class TransactionalDdlAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** One connection; who wants it waits for who has it, so that a transaction is not mixed with other queries. */
class NodeSqliteDriver implements Driver {
  readonly #path: string;
  #connection: NodeSqliteConnection | undefined;
  readonly #turns = new Semaphore(1);
  #release: Release = () => undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async init(): Promise<void> {
    // No time-out inside SQLite: it would block the event loop. whenFree waits instead.
    const database = new DatabaseSync(this.#path, { timeout: 0, enableForeignKeyConstraints: true });
    // WAL: readers and the one writer do not wait for each other. FULL: a write that was answered survives a power cut.
    await whenFree(() => database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"));
    this.#connection = new NodeSqliteConnection(database);
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    this.#release = await this.#turns.acquire();
    if (this.#connection === undefined) throw new Error("the database is closed");
    return this.#connection;
  }

  async releaseConnection(): Promise<void> {
    this.#release();
  }

  async beginTransaction(_: DatabaseConnection, { accessMode }: TransactionSettings): Promise<void> {
    // IMMEDIATE: take the write lock now, where waiting for it is possible, not in the middle of the transaction.
    // A transaction that only reads takes no lock, and sees the database as of its first query.
    const begin = accessMode === "read only" ? "BEGIN" : "BEGIN IMMEDIATE";
    await whenFree(() => this.#connection?.exec(begin));
  }
  async commitTransaction(): Promise<void> {
    this.#connection?.exec("COMMIT");
  }
  async rollbackTransaction(): Promise<void> {
    // A full disk has ended the transaction already. A ROLLBACK then would hide that error.
    if (this.#connection?.isInTransaction === true) this.#connection.exec("ROLLBACK");
  }

  async destroy(): Promise<void> {
    this.#connection?.close();
    this.#connection = undefined;
  }
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync;
  /** By text. */
  readonly #statements = new BoundedMap<string, StatementSync>({ max: MAX_STATEMENTS });

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  get isInTransaction(): boolean {
    return this.#database.isTransaction;
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return whenFree(() => {
      const statement = this.#prepare(query.sql);
      const parameters = query.parameters as readonly SQLInputValue[];
      if (statement.columns().length > 0) return { rows: statement.all(...parameters) as R[] };
      const { changes } = statement.run(...parameters);
      return { rows: [], numAffectedRows: BigInt(changes) };
    });
  }

  // oxlint-disable-next-line require-yield -- the interface asks for it; nothing here streams
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error("streaming queries are not supported");
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/** Runs a statement once no other process holds the lock that it needs. */
async function whenFree<T>(run: () => T): Promise<T> {
  const deadline = performance.now() + BUSY_TIMEOUT_MS;
  for (;;) {
    try {
      return run();
    } catch (error) {
      const busy = error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY;
      if (!busy || performance.now() > deadline) throw error;
      await sleep(BUSY_POLL_MS);
    }
  }
}

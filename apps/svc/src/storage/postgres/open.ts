import { systemCode, type Secret } from "@devplat/base";
import { Kysely, PostgresDialect, sql, type PostgresPool, type PostgresPoolClient } from "kysely";
import { Pool, types, type PoolConfig } from "pg";
import { BRAND } from "../../brand.ts";
import { SvcError } from "../../errors.ts";
import type { Tables } from "../rows/tables.ts";
import { CONNECT_TIMEOUT_MS, connectionConfig } from "./connection-config.ts";
import { DSN_FORM, parsePostgresDsn } from "./dsn.ts";

/** Milliseconds for one statement on the server: all of our statements take a few. */
const STATEMENT_TIMEOUT_MS = 10_000;
/** Milliseconds without an answer after which a connection counts as dead: beyond the server's own limit. */
const READ_TIMEOUT_MS = 15_000;
/** Milliseconds for a migration, the wait for another instance's one included. */
const MIGRATION_TIMEOUT_MS = 10 * 60_000;
/** Milliseconds that a connection may idle before it is closed. */
const IDLE_MS = 60_000;

export interface PostgresOptions {
  readonly dsn: Secret;
  /** Maximum concurrent connections. */
  readonly maxConnections: number;
  /** Statements may take minutes. Default false. */
  readonly forMigration?: boolean;
}

/**
 * Connects to the database, which must exist.
 *
 * @throws SvcError `config_refused`; `database_unavailable` naming server and database, never the password
 */
export async function openPostgres(options: PostgresOptions): Promise<Kysely<Tables>> {
  const address = parsePostgresDsn(options.dsn);
  const statementMs = options.forMigration === true ? MIGRATION_TIMEOUT_MS : STATEMENT_TIMEOUT_MS;
  const readMs = options.forMigration === true ? MIGRATION_TIMEOUT_MS + CONNECT_TIMEOUT_MS : READ_TIMEOUT_MS;
  const pool = new Pool({
    ...connectionConfig(address),
    max: options.maxConnections,
    idleTimeoutMillis: IDLE_MS,
    statement_timeout: statementMs,
    idle_in_transaction_session_timeout: statementMs,
    query_timeout: readMs,
    types: { getTypeParser },
  } satisfies PoolConfig);
  // Connections that the server ends. Idle ones the pool drops; of one that is in use, between two statements, nobody
  // else would hear, and an error without a listener ends the process. The next statement on it fails.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => void client.on("error", () => undefined));
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: new CarefulPool(pool) }) });
  try {
    await sql`SELECT 1`.execute(db);
    return db;
  } catch (error) {
    await db.destroy().catch(() => undefined);
    const place = `"${address.database ?? address.user ?? BRAND.command}" at ${address.host}:${address.port}`;
    throw new SvcError("database_unavailable", `Cannot open the database ${place}: ${reasonOf(error)}`, {
      remedy: "retry",
      hint: "Check database.dsn (SVC_DATABASE_DSN), and that the server runs and lets this machine in.",
    });
  }
}

/** @throws SvcError `config_refused`: this database has no place by default */
export function requiredDsn(dsn: Secret | undefined): Secret {
  if (dsn !== undefined) return dsn;
  throw new SvcError("config_refused", "database.dsn (SVC_DATABASE_DSN) is not set", {
    hint: `With database.driver postgres, it says where the server is: ${DSN_FORM}`,
  });
}

/** Discards a connection that once did not answer, because its late response would be read for another query. */
class CarefulPool implements PostgresPool {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async connect(): Promise<PostgresPoolClient> {
    const client = await this.#pool.connect();
    let silent = false;
    const query = async (text: string, values: unknown[]): Promise<unknown> => {
      try {
        return await client.query(text, values);
      } catch (error) {
        // Errors of the server have a code. Errors about a missing response have none.
        if (systemCode(error) === undefined) silent = true;
        throw error;
      }
    };
    // kysely's type has a second form, for cursors, which nothing here uses.
    return { query: query as unknown as PostgresPoolClient["query"], release: () => client.release(silent) };
  }

  async end(): Promise<void> {
    await this.#pool.end();
  }
}

/** The driver gives int8 as text; ours are times and counts, far below 2^53. */
function getTypeParser(oid: Parameters<typeof types.getTypeParser>[0], format?: "text" | "binary"): unknown {
  if (oid === types.builtins.INT8 && format !== "binary") return Number;
  return types.getTypeParser(oid, format);
}

/** Faults of the certificate check (Node's tls). */
const TLS_FAULT = /^(?:CERT_|ERR_TLS_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH)/;

/** In our own words where they are known, else the server's code: its messages may quote what it was sent. */
function reasonOf(error: unknown): string {
  const code = systemCode(error);
  switch (code) {
    case "28P01":
    case "28000":
      return "the server refuses user name or password";
    case "42501":
      return "permission denied";
    case "3D000":
      return "it does not exist";
    case "ECONNREFUSED":
      return "nothing listens there";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "no such host";
    case "53300":
      return "the server has no connection left";
    case "57P03":
      return "the server is starting up or shutting down";
    case undefined:
      return error instanceof Error && /does not support SSL/.test(error.message)
        ? "the server does not speak TLS; sslmode=disable asks for none"
        : "no answer in time, or the connection broke";
    default:
      return TLS_FAULT.test(code) ? `its certificate is not trusted (${code})` : `code ${code}`;
  }
}

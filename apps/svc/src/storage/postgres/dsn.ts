import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import type { ConnectionOptions } from "node:tls";
import { Secret, systemCode } from "@devplat/base";
import { SvcError } from "../../errors.ts";

/** Where a Postgres server is, and as whom to ask it. */
export interface PostgresAddress {
  /** A host name, an address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string | undefined;
  readonly password: Secret | undefined;
  readonly database: string | undefined;
  readonly applicationName: string | undefined;
  /** Undefined: no TLS. */
  readonly tls: ConnectionOptions | undefined;
}

const DEFAULT_PORT = 5432;
const PARAMETERS = ["sslmode", "sslrootcert", "sslcert", "sslkey", "host", "application_name"];
/** For messages. */
export const DSN_FORM = "postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full";

/**
 * Reads a connection URI as libpq writes it (postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING), with the
 * parameters `sslmode` (`disable`, the default; `require`: encrypted, any certificate; `verify-ca`; `verify-full`),
 * `sslrootcert`, `sslcert`, `sslkey` (PEM files), `host` (folder of a Unix socket) and `application_name`.
 *
 * @throws SvcError `config_refused`; no part of the text is quoted but the names of its parameters
 */
export function parsePostgresDsn(dsn: Secret): PostgresAddress {
  const url = URL.parse(dsn.reveal());
  if (url === null || !["postgres:", "postgresql:"].includes(url.protocol)) {
    throw refused(`expected ${DSN_FORM}`);
  }
  const parameters = url.searchParams;
  for (const name of parameters.keys()) {
    if (!PARAMETERS.includes(name)) {
      throw refused(`the parameter ${JSON.stringify(name.slice(0, 40))} is not known`);
    }
  }
  const host = parameters.get("host") ?? decoded(url.hostname.replace(/^\[(.*)\]$/, "$1"));
  if (host === "") throw refused("it names no host");
  const password = decoded(url.password);
  return {
    host,
    port: url.port === "" ? DEFAULT_PORT : Number(url.port),
    user: decoded(url.username) || undefined,
    password: password === "" ? undefined : new Secret(password),
    database: decoded(url.pathname.slice(1)) || undefined,
    applicationName: parameters.get("application_name") ?? undefined,
    tls: tlsOf(parameters, host),
  };
}

function tlsOf(parameters: URLSearchParams, host: string): ConnectionOptions | undefined {
  const mode = parameters.get("sslmode") ?? "disable";
  if (mode === "disable") return undefined;
  if (!["require", "verify-ca", "verify-full"].includes(mode)) {
    throw refused("sslmode must be disable, require, verify-ca or verify-full");
  }
  const file = (name: string): string | undefined => {
    const path = parameters.get(name);
    return path === null ? undefined : pemFile(name, path);
  };
  const [ca, cert, key] = [file("sslrootcert"), file("sslcert"), file("sslkey")];
  if ((cert === undefined) !== (key === undefined)) {
    throw refused("sslcert and sslkey belong together");
  }
  // As libpq has it: with an authority of one's own, `require` means `verify-ca`.
  const verified = mode !== "require" || ca !== undefined;
  return {
    // The certificate is compared with this name. An address is not a server name (RFC 6066, section 3).
    ...(host.startsWith("/") ? {} : isIP(host) === 0 ? { servername: host } : { host }),
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
    rejectUnauthorized: verified,
    ...(mode === "verify-full" ? {} : { checkServerIdentity: () => undefined }),
  };
}

function pemFile(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw refused(`the file of ${name} cannot be read (${systemCode(error) ?? "unknown fault"})`);
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refused("it holds a % that does not begin a percent-encoding; write a % of a password as %25");
  }
}

function refused(problem: string): SvcError {
  return new SvcError("config_refused", `database.dsn (SVC_DATABASE_DSN) cannot be used: ${problem}`);
}

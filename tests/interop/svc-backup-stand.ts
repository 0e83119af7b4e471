import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  callJson,
  type CodeHost,
  type Finished,
  gitEnvironment,
  type Postgres,
  run,
  startSvc,
  type Svc,
  SVC_LAUNCHER,
} from "@devplat/testkit";

export const HOST_TOKEN = "ghp_planted0HostToken";
export const KEY = "0a".repeat(32);
export const PASSPHRASE = "correct horse battery";

/** Kind of database, with the environment for a new one. */
export interface DatabaseKind {
  readonly name: "SQLite" | "Postgres";
  /** Environment of a service on an empty database. */
  create(): Promise<Record<string, string>>;
  /** Destroys the database and everything that its machine had. */
  destroy(environment: Record<string, string>): Promise<void>;
}

export function sqliteKind(folder: string): DatabaseKind {
  return {
    name: "SQLite",
    create: async () => ({ SVC_DATA_DIR: await mkdtemp(join(folder, "sqlite-")), SVC_ENCRYPTION_KEY: KEY }),
    destroy: async ({ SVC_DATA_DIR = "" }) => rm(SVC_DATA_DIR, { recursive: true }),
  };
}

export function postgresKind(folder: string, postgres: Postgres): DatabaseKind {
  return {
    name: "Postgres",
    async create() {
      return {
        SVC_DATA_DIR: await mkdtemp(join(folder, "postgres-")),
        SVC_ENCRYPTION_KEY: KEY,
        SVC_DATABASE_DRIVER: "postgres",
        SVC_DATABASE_DSN: await postgres.createDatabase(),
      };
    },
    async destroy({ SVC_DATA_DIR = "", SVC_DATABASE_DSN = "" }) {
      await rm(SVC_DATA_DIR, { recursive: true });
      const name = new URL(SVC_DATABASE_DSN).pathname.slice(1);
      await psql(postgres.dsn, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

/** @returns the rows, one a line */
export async function psql(dsn: string, statement: string): Promise<string> {
  const { postgresFolder } = await import("@devplat/testkit");
  const done = await run(join(postgresFolder(), "psql"), ["-X", "-q", "-t", "-A", "-c", statement, dsn]);
  if (done.code !== 0) throw new Error(`psql ended with ${done.code}: ${done.stderr}`);
  return done.stdout;
}

/** Runs `svc` with this environment alone. */
export async function svc(
  args: readonly string[],
  environment: Record<string, string>,
  cwd: string,
): Promise<Finished> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_"));
  return run(SVC_LAUNCHER, args, { cwd, env: { ...Object.fromEntries(inherited), ...environment } });
}

export async function start(host: CodeHost, environment: Record<string, string>): Promise<Svc> {
  const { SVC_DATA_DIR: dataDir = "", ...env } = environment;
  return startSvc({ codeHost: host, dataDir, env });
}

/** Calls the API. @returns the status and the JSON body */
export async function call(
  service: Svc,
  method: string,
  path: string,
  token: string,
  body?: unknown,
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  return callJson(service.url + path, { method, token, body });
}

export async function signIn(service: Svc): Promise<string> {
  return service.signIn({ username: "root", role: "admin", host_token: HOST_TOKEN });
}

export async function mint(service: Svc, session: string): Promise<{ id: string; token: string }> {
  const request = { repository: "acme/widgets", scopes: "contents:read", duration: "1h" };
  const { body } = await call(service, "POST", "/api/tokens", session, request);
  return { id: String(body["id"]), token: String(body["token"]) };
}

/** Clones with a token. @returns the exit code of git */
export async function clone(service: Svc, token: string, target: string): Promise<number | null> {
  const url = `${service.url.replace("://", `://x:${token}@`)}/acme/widgets.git`;
  const done = await run("git", ["clone", "--quiet", url, target], { env: gitEnvironment() });
  return done.code;
}

/**
 * `npm run start:instances`: several instances of the service on this machine, with what they share: a Postgres, an S3 bucket
 * and nginx in front, and a git server as the code host. All data is temporary, except logs and the files to paste from in
 * `data/instances/`, or START_DATA_DIR. Ctrl-C stops everything.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { AppError, messageOf } from "@devplat/base";
import { signalProcess } from "@devplat/base/process-signal";
import { startCodeHostProcess, startPostgres, startVersityGateway, tempFolder } from "@devplat/testkit";
import { developmentSession } from "../development-session.ts";
import { freePortFrom } from "../ports.ts";
import { untilReady } from "../program.ts";
import { HELP, readArguments } from "./arguments.ts";
import { startBalancer } from "./balancer.ts";
import { Instance } from "./instance.ts";
import { reviveServers, type SharedServer } from "./revival.ts";
import { environment, sheet, type SheetParts } from "./sheet.ts";
import { StartClaim, type Child } from "./start-record.ts";

const root = resolve(import.meta.dirname, "../../..");
const data = resolve(root, process.env["START_DATA_DIR"] ?? "data/instances");
const shown = relative(root, data).startsWith("..") ? data : relative(root, data);
const REPOSITORY = { owner: "acme", name: "widgets" } as const;
/** The one user at the code host, who can push. */
const HOST_USER = { user: "dev", token: "token-at-the-code-host" } as const;
/** Beginning of all names in the bucket. */
const PREFIX = "svc";
/** Exit code after SIGINT, as a shell counts it. */
const INTERRUPTED = 130;

/** Ends all that it owns, in reverse order, and records the processes. */
interface Keeping {
  readonly own: <T extends { stop(): Promise<unknown> }>(resource: T) => T;
  /** @param signal ends the process; default SIGTERM */
  readonly keep: (
    name: string,
    server: { readonly pid: number | undefined },
    signal?: NodeJS.Signals,
  ) => Promise<void>;
  readonly record: () => Promise<void>;
}

async function main(): Promise<number> {
  const { help, count } = readArguments(process.argv.slice(2));
  if (help) {
    process.stdout.write(HELP);
    return 0;
  }
  const stopping = new AbortController();
  const stop = Promise.withResolvers<void>();
  let isUp = false;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      // During the start, and for the second time: the keeper ends all processes.
      if (!isUp || stopping.signal.aborted) process.exit(INTERRUPTED);
      process.stderr.write("Stopping ...\n");
      stopping.abort();
      stop.resolve();
    });
  }
  await mkdir(data, { recursive: true, mode: 0o700 });
  await using resources = new AsyncDisposableStack();
  const temporary = await tempFolder("instances");
  resources.defer(async () => temporary.remove());
  const claim = resources.use(await StartClaim.acquire(data, temporary.path));
  startKeeper();
  // Postgres may run as another user, who must be able to enter it.
  await chmod(temporary.path, 0o711);
  process.env["TMPDIR"] = temporary.path;

  const children: (() => Child | undefined)[] = [];
  const record = async (): Promise<void> =>
    claim.record(children.map((each) => each()).filter((each) => each !== undefined));
  // A paused process ends only after it continues.
  const resume = (): void => {
    for (const each of children) signalProcess(each()?.pid ?? process.pid, "SIGCONT");
  };
  const servers = await startAll(count, {
    own: (resource) => {
      resources.defer(async () => void (await resource.stop()));
      return resource;
    },
    keep: async (name, server, signal = "SIGTERM") => {
      children.push(() => (server.pid === undefined ? undefined : { name, pid: server.pid, signal }));
      await record();
    },
    record,
  });
  isUp = true;
  const revival = reviveServers(servers, record, stopping.signal);
  await Promise.race([stop.promise, revival]);
  await revival;
  resume();
  return 0;
}

/** @returns servers to start again when they have ended */
async function startAll(count: number, keeping: Keeping): Promise<readonly SharedServer[]> {
  const { own, keep } = keeping;
  process.stderr.write("Starting a code host, Postgres and an S3 server ...\n");
  const codeHost = own(await startCodeHostProcess());
  await keep("code-host", codeHost);
  await codeHost.addRepository(REPOSITORY.owner, REPOSITORY.name);
  const repository = `${REPOSITORY.owner}/${REPOSITORY.name}`;
  await codeHost.addUser(HOST_USER.user, HOST_USER.token, { repositories: [repository] });
  const postgres = own(await startPostgres());
  // SIGTERM would wait for the clients to leave.
  await keep("postgres", postgres, "SIGINT");
  const s3 = own(await startVersityGateway());
  await keep("s3", s3);
  const dsn = await postgres.createDatabase();

  const balancerPort = await freePortFrom(8070);
  const baseUrl = `http://localhost:${balancerPort}`;
  process.stderr.write(`Starting ${count} instances (logs: ${shown}/NAME/svc.log) ...\n`);
  const instances = await startInstances(count, keeping, {
    SVC_SERVER_BASE_URL: baseUrl,
    SVC_HOST_URL: codeHost.url,
    SVC_HOST_API_URL: codeHost.apiUrl,
    SVC_DATABASE_DRIVER: "postgres",
    SVC_DATABASE_DSN: dsn,
    SVC_ENCRYPTION_KEY: randomBytes(32).toString("hex"),
    SVC_CACHE_STORAGE_PATH: PREFIX,
    SVC_CACHE_OBJECT_BUCKET: s3.bucket,
    SVC_CACHE_OBJECT_REGION: s3.region,
    SVC_CACHE_OBJECT_ENDPOINT: s3.endpoint,
    SVC_CACHE_OBJECT_ACCESS_KEY_ID: s3.accessKeyId,
    SVC_CACHE_OBJECT_SECRET_ACCESS_KEY: s3.secretAccessKey,
  });
  const ports = instances.map(({ port }) => port);
  const balancer = own(await startBalancer(balancerPort, ports));
  await keep("nginx", balancer);
  if (!(await untilReady(`${balancer.url}/readyz`, new Promise(() => {})))) {
    throw new Error(`No instance is ready: ${shown}/a/svc.log tells more`);
  }
  const parts: SheetParts = {
    root,
    data,
    shown,
    instances,
    balancer: { url: baseUrl, pid: balancer.pid },
    codeHost: { url: codeHost.url, pid: codeHost.pid, ...HOST_USER, repository },
    postgres: { dsn, pid: postgres.pid },
    s3: { ...s3, pid: s3.pid, prefix: PREFIX },
  };
  const token = await developmentSession(`http://127.0.0.1:${ports[0]}`, { host_token: HOST_USER.token });
  await writeFile(join(data, "env"), environment(parts, token), { mode: 0o600 });
  process.stdout.write(sheet(parts));
  return [named("nginx", balancer), named("postgres", postgres), named("s3", s3)];
}

async function startInstances(
  count: number,
  { own, keep, record }: Keeping,
  shared: Readonly<Record<string, string>>,
): Promise<Instance[]> {
  const instances: Instance[] = [];
  for (let index = 0; index < count; index++) {
    const name = String.fromCodePoint("a".codePointAt(0)! + index);
    const folder = join(data, name);
    const port = await freePortFrom(8081 + index * 10);
    const metricsPort = await freePortFrom(9141 + index * 10);
    const logFile = join(folder, "svc.log");
    const instance = new Instance({
      name,
      root,
      folder,
      logFile,
      port,
      metricsPort,
      shared,
      onProcess: record,
    });
    instances.push(own(instance));
    await keep(name, instance);
    await instance.start();
  }
  return instances;
}

/** Reads the process id when it is needed, because it changes. */
function named(name: string, server: Omit<SharedServer, "name">): SharedServer {
  return {
    name,
    get pid() {
      return server.pid;
    },
    restart: async () => server.restart(),
  };
}

/** It learns of the end of this process by its standard input. */
function startKeeper(): void {
  const keeper = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", join(import.meta.dirname, "keeper.ts"), data, `${process.pid}`],
    { stdio: ["pipe", "ignore", "inherit"], detached: true },
  );
  keeper.unref();
}

try {
  process.exitCode = await main();
} catch (error) {
  const hint = error instanceof AppError && error.hint !== undefined ? `: ${error.hint}` : "";
  process.stderr.write(`error: ${messageOf(error)}${hint}\n`);
  process.exitCode = 1;
}

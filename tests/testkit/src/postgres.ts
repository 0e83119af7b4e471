import { chmod, chown } from "node:fs/promises";
import { join } from "node:path";
import { makeCertificate } from "./certificate.ts";
import { TestkitError } from "./errors.ts";
import { freePort } from "./free-port.ts";
import { postgresFolder } from "./peer-programs.ts";
import { startPeer, type Peer } from "./peer.ts";
import { run } from "./process.ts";
import { tempFolder } from "./temp-folder.ts";

/** A real Postgres on loopback, without durability: its data goes with it. */
export interface Postgres {
  /** URL of the database `postgres`, with all rights and no password. */
  readonly dsn: string;
  /** Id of the server process. It is another one after {@link restart}. */
  readonly pid: number;
  /** The certificate that it shows, which is its own authority (PEM), good for 127.0.0.1; only with `tls`. */
  readonly caFile: string | undefined;
  /** Makes an empty database and resolves with its DSN. */
  createDatabase(): Promise<string>;
  /**
   * Ends the server; the data stays.
   *
   * @param signal default: SIGINT, its fast shutdown. SIGTERM waits for the clients to leave, SIGQUIT does not even close files.
   */
  goAway(signal?: NodeJS.Signals): Promise<void>;
  /** Starts the server again on the same port. */
  restart(): Promise<void>;
  /** Stops all its processes (SIGSTOP): connections stay open, and nothing responds. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  stop(): Promise<void>;
}

/** The operating-system user that Debian's package makes; Postgres refuses to run as root. */
const SERVER_USER = "postgres";

/** SIGTERM would wait for the clients to leave. */
const FAST_SHUTDOWN = "SIGINT";
/** The kernel forgets the signal of {@link startPeer} when the user changes, so it is set again. */
const SWITCH_USER = [
  `--reuid=${SERVER_USER}`,
  `--regid=${SERVER_USER}`,
  "--init-groups",
  "--pdeathsig=INT",
  "--",
];

export interface PostgresOptions {
  /** Whether it speaks TLS too. Default false. */
  readonly tls?: boolean;
}

export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const programs = postgresFolder();
  const folder = await tempFolder("postgres");
  const data = join(folder.path, "data");
  const switched = process.getuid?.() === 0;
  if (switched) {
    await handOver(folder.path);
    await chmod(folder.path, 0o700);
  }
  const as = (args: readonly string[]): [string, string[]] =>
    switched ? ["setpriv", [...SWITCH_USER, ...args]] : [args[0] ?? "", args.slice(1)];
  // PG* variables of the user would change what the programs do.
  const env = { PATH: process.env["PATH"], HOME: folder.path, LC_ALL: "C" };
  const made = await run(
    ...as([
      join(programs, "initdb"),
      `--pgdata=${data}`,
      "--username=postgres",
      "--auth=trust",
      "--encoding=UTF8",
      "--locale=C",
      "--no-sync",
      "--no-instructions",
    ]),
    { env, cwd: folder.path },
  );
  if (made.code !== 0) {
    await folder.remove();
    throw TestkitError.failed("Postgres", `initdb ended with ${made.code}: ${made.stderr}`);
  }
  const certificate = options.tls === true ? await makeCertificate(folder.path, ["IP:127.0.0.1"]) : undefined;
  if (certificate !== undefined && switched) {
    // The server refuses a key that belongs to another user.
    for (const file of [certificate.certFile, certificate.keyFile]) await handOver(file);
  }
  let port = 0;
  const start = (choose: () => Promise<number>): Promise<Peer> =>
    startPeer("Postgres", async () => {
      port = await choose();
      const settings = {
        listen_addresses: "127.0.0.1",
        port,
        unix_socket_directories: folder.path,
        fsync: "off",
        synchronous_commit: "off",
        full_page_writes: "off",
        max_connections: 50,
        shared_buffers: "16MB",
        ...(certificate !== undefined && {
          ssl: "on",
          ssl_cert_file: certificate.certFile,
          ssl_key_file: certificate.keyFile,
        }),
      };
      const [command, args] = as([
        join(programs, "postgres"),
        "-D",
        data,
        ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
      ]);
      return {
        command,
        args,
        options: { env, cwd: folder.path },
        isReady: (output) => output.includes("ready to accept connections"),
      };
    });
  let peer = await start(freePort);
  const dsnOf = (database: string): string => `postgres://postgres@127.0.0.1:${port}/${database}`;
  let databases = 0;
  return {
    dsn: dsnOf("postgres"),
    get pid() {
      return peer.pid;
    },
    caFile: certificate?.certFile,
    async createDatabase() {
      const name = `test_${++databases}`;
      const done = await run(
        join(programs, "psql"),
        ["-X", "-q", "-c", `CREATE DATABASE ${name}`, dsnOf("postgres")],
        { env },
      );
      if (done.code !== 0) {
        throw new TestkitError("command_failed", `psql ended with ${done.code}: ${done.stderr}`);
      }
      return dsnOf(name);
    },
    async goAway(signal = FAST_SHUTDOWN) {
      await peer.stop(signal);
    },
    async restart() {
      await peer.stop(FAST_SHUTDOWN);
      peer = await start(() => Promise.resolve(port));
    },
    pause: async () => signalServer(peer.pid, "SIGSTOP"),
    resume: async () => signalServer(peer.pid, "SIGCONT"),
    async stop() {
      // A paused server does not end.
      await signalServer(peer.pid, "SIGCONT");
      await peer.stop(FAST_SHUTDOWN);
      await folder.remove();
    },
  };
}

/** Its children are leaders of groups of their own. First the server itself, so that it makes no further ones. */
async function signalServer(pid: number, signal: NodeJS.Signals): Promise<void> {
  const send = (each: number): void => {
    try {
      process.kill(each, signal);
    } catch (error) {
      // It has ended.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  };
  send(pid);
  const { stdout } = await run("ps", ["-o", "pid=", "--ppid", String(pid)]);
  for (const line of stdout.split("\n").filter((each) => each.trim() !== "")) send(Number(line));
}

/** Makes the server's user the owner. */
async function handOver(path: string): Promise<void> {
  const ids = await Promise.all(["-u", "-g"].map((flag) => run("id", [flag, SERVER_USER])));
  const [uid, gid] = ids.map(({ code, stdout }) => (code === 0 ? Number(stdout) : undefined));
  if (uid === undefined || gid === undefined) throw TestkitError.missing("the user `postgres`");
  await chown(path, uid, gid);
}

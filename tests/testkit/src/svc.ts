import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { TestkitError } from "./errors.ts";
import { freePort } from "./free-port.ts";
import { SVC_LAUNCHER } from "./launchers.ts";
import { answers, startPeer } from "./peer.ts";
import { sendJson } from "./send-json.ts";
import { tempFolder } from "./temp-folder.ts";

/** Time limit for a line of the log on a loaded machine. */
const LOG_LIMIT_MS = 30_000;

export interface SvcOptions {
  /** The code host it fronts. */
  readonly codeHost?: { readonly url: string; readonly apiUrl: string };
  /** Environment variables over the defaults; undefined takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The program to run. Default: the launcher of the sources. */
  readonly program?: string;
  /** Further arguments of `serve`. */
  readonly args?: readonly string[];
  /** Text of a configuration file. Default: none; the environment says all. */
  readonly configText?: string;
  /** `configText` has certificates for `localhost`: it speaks TLS, and says itself when it is ready. */
  readonly https?: boolean;
  /** Takes it as ready when its log says so, without a request. Default: `/readyz` is asked. */
  readonly untilListening?: boolean;
  /** The port of its main listener. Default: a free one. For peers that have to know its address before it runs. */
  readonly port?: number;
  /** A folder to go on with, which then is not removed at the end. Default: a new one. */
  readonly dataDir?: string;
}

export interface TestLogin {
  readonly username: string;
  readonly role: "admin" | "user";
  /** The user's token at the code host. */
  readonly host_token?: string;
}

/** The service as a real process in development mode on free ports of loopback, with its cache on. */
export interface Svc {
  readonly url: string;
  readonly metricsUrl: string;
  readonly pid: number;
  readonly dataDir: string;
  /** Everything it printed so far: its log. */
  log(): string;
  /** Waits for what the log will hold, as its lines come through a pipe of their own, behind the answers. */
  logged(text: RegExp): Promise<void>;
  /** A session's token, by development mode's login. Default: of `ada`, who is an admin. */
  signIn(login?: TestLogin): Promise<string>;
  /** A token of this service, valid for an hour, for what `asked` says (`POST /api/tokens`). */
  mintToken(session: string, asked: Readonly<Record<string, unknown>>): Promise<string>;
  /** Puts a repository on the list of those that are cached. */
  addCachedRepository(owner: string, name: string): Promise<void>;
  /** SIGTERM; resolves with the exit code. Removes the data folder if it made it. */
  stop(): Promise<number>;
  /** Sends SIGKILL immediately. The data folder stays until {@link stop}. */
  kill(): void;
}

export async function startSvc(options: SvcOptions = {}): Promise<Svc> {
  const folder = await tempFolder("svc");
  const dataDir = options.dataDir ?? join(folder.path, "data");
  const configPath = join(folder.path, "svc.yaml");
  if (options.configText !== undefined) await writeFile(configPath, options.configText, { mode: 0o600 });
  let url = "";
  let metricsUrl = "";
  const peer = await startPeer("svc", async () => {
    const [port, metricsPort] = [options.port ?? (await freePort()), await freePort()];
    url = options.https === true ? `https://localhost:${port}` : `http://127.0.0.1:${port}`;
    metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`;
    return {
      command: options.program ?? SVC_LAUNCHER,
      args: [
        "serve",
        "--migrate",
        ...(options.configText === undefined ? [] : ["--config", configPath]),
        ...(options.args ?? []),
      ],
      options: {
        cwd: folder.path,
        env: {
          ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_"))),
          SVC_DEV_MODE: "true",
          SVC_DATA_DIR: dataDir,
          SVC_SERVER_LISTEN: `127.0.0.1:${port}`,
          SVC_SERVER_BASE_URL: url,
          SVC_METRICS_LISTEN: `127.0.0.1:${metricsPort}`,
          SVC_CACHE_ENABLED: "true",
          // Immediately: tests wait for packs to be merged.
          SVC_CACHE_REPACK_IDLE_SECONDS: "0",
          ...(options.codeHost === undefined
            ? {}
            : { SVC_HOST_URL: options.codeHost.url, SVC_HOST_API_URL: options.codeHost.apiUrl }),
          ...options.env,
        },
      },
      isReady: (output) =>
        options.https === true || options.untilListening === true
          ? output.includes('"listening"')
          : answers(`${url}/readyz`),
    };
  });
  const post = async (path: string, body: unknown, token?: string): Promise<Record<string, unknown>> => {
    const answer = await sendJson(url + path, { method: "POST", token, body });
    if (!answer.ok)
      throw TestkitError.failed("svc", `${path} answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as Record<string, unknown>;
  };
  const signIn = async (login: TestLogin = { username: "ada", role: "admin" }): Promise<string> =>
    String((await post("/auth/test-login", login))["session_token"]);
  return {
    url,
    metricsUrl,
    pid: peer.pid,
    dataDir,
    log: () => peer.output(),
    async logged(text) {
      const deadline = performance.now() + LOG_LIMIT_MS;
      while (!text.test(peer.output())) {
        if (performance.now() > deadline)
          throw TestkitError.failed("svc", `${String(text)} is not in its log`);
        await sleep(10);
      }
    },
    signIn,
    mintToken: async (session, asked) =>
      String((await post("/api/tokens", { duration: "1h", ...asked }, session))["token"]),
    async addCachedRepository(owner, name) {
      await post("/api/cached-repos", { owner, name }, await signIn());
    },
    async stop() {
      const code = await peer.stop();
      await folder.remove();
      return code;
    },
    kill: () => void process.kill(peer.pid, "SIGKILL"),
  };
}

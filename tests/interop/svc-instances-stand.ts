import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  type CodeHost,
  freePort,
  gitEnvironment,
  type Postgres,
  repositories,
  run,
  type S3Proxy,
  type S3Server,
  sendJson,
  startCodeHost,
  startPostgres,
  startS3Proxy,
  startSvc,
  type Svc,
  type TempFolder,
  tempFolder,
  until,
} from "@devplat/testkit";
import { BucketReader } from "./svc-bucket-reader.ts";
import { contentOf } from "./svc-git-stand.ts";
import { startTcpRelay, type TcpRelay } from "./tcp-relay.ts";

export const HOST_TOKEN = "ghp_plantedHostToken";
/** Encryption key of all instances, in hex. The key of manifests is derived from it. */
export const ENCRYPTION_KEY = "5a".repeat(32);
/** `cache.storage_path` with a bucket. */
export const PREFIX = "fleet/one";

const SHIFTED_CLOCK = pathToFileURL(join(import.meta.dirname, "shifted-clock.ts")).href;

/** An instance of the service, and its connections to the database and to the bucket. */
export interface Instance {
  readonly name: string;
  readonly svc: Svc;
  /** Before the database. It can be cut only if there is a Postgres. */
  readonly relay: TcpRelay;
  /** Before the bucket; only with a bucket. */
  readonly s3: S3Proxy;
  /**
   * Sends SIGKILL, and starts it again with the same folder and port when the returned function is called.
   *
   * @returns function that takes more environment variables
   */
  kill(): (env?: Readonly<Record<string, string>>) => Promise<Instance>;
}

export interface InstancesOptions {
  /** Starts the server of the bucket that all instances share. Default: there is no bucket. */
  readonly bucket?: () => Promise<S3Server>;
  /** `sqlite`: each instance has a database of its own. Default: `postgres`, which all share. */
  readonly database?: "postgres" | "sqlite";
  /** Whether the bucket honours conditions on writes. Default true. {@link InstancesStand.upgradeBucket} changes it. */
  readonly conditions?: boolean;
}

export interface InstanceOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The program to run. Default: the launcher of the sources. */
  readonly program?: string;
  readonly port?: number;
}

/** Several instances, each with a cache folder of its own, and relays before the database and the bucket. */
export class InstancesStand {
  readonly host: CodeHost;
  readonly folder: TempFolder;
  /** Folder of acme/widgets at the code host. */
  readonly path: string;
  readonly #postgres: Postgres | undefined;
  readonly #dsn: string | undefined;
  readonly #bucket: S3Server | undefined;
  readonly #hasPointers: boolean;
  #hasConditions: boolean;
  readonly #instances = new Set<Instance>();
  readonly #ended: { stop(): unknown }[] = [];
  /** Sessions of an administrator. With one database all instances know the first. */
  readonly #sessions = new Map<string, string>();
  #clones = 0;

  private constructor(parts: {
    readonly host: CodeHost;
    readonly folder: TempFolder;
    readonly path: string;
    readonly postgres: Postgres | undefined;
    readonly dsn: string | undefined;
    readonly bucket: S3Server | undefined;
    readonly hasConditions: boolean;
  }) {
    this.host = parts.host;
    this.folder = parts.folder;
    this.path = parts.path;
    this.#postgres = parts.postgres;
    this.#dsn = parts.dsn;
    this.#bucket = parts.bucket;
    this.#hasConditions = parts.hasConditions;
    this.#hasPointers = !parts.hasConditions;
  }

  static async start({
    bucket: startBucket,
    database = "postgres",
    conditions: hasConditions = true,
  }: InstancesOptions = {}): Promise<InstancesStand> {
    const [host, postgres, bucket, folder] = await Promise.all([
      // As GitHub. With it git before 2.41 cannot read a shallow clone from its own server (docs/interop.md).
      startCodeHost({ refInWant: false }),
      database === "postgres" ? startPostgres() : undefined,
      startBucket?.(),
      tempFolder("instances"),
    ]);
    host.addUser("alice", HOST_TOKEN);
    const { path } = await host.addRepository("acme", "widgets", {
      private: true,
      build: repositories.linear,
    });
    const dsn = await postgres?.createDatabase();
    return new InstancesStand({ host, postgres, folder, dsn, bucket, path, hasConditions });
  }

  get postgres(): Postgres {
    assert.ok(this.#postgres !== undefined, "the stand has no Postgres");
    return this.#postgres;
  }

  get bucket(): S3Server {
    assert.ok(this.#bucket !== undefined, "the stand has no bucket");
    return this.#bucket;
  }

  /** DSN of the common database, without a relay. */
  get dsn(): string {
    assert.ok(this.#dsn !== undefined, "the stand has no common database");
    return this.#dsn;
  }

  /** Session of an administrator at the first instance. */
  get admin(): string {
    return [...this.#sessions.values()][0] ?? "";
  }

  /** @returns output of psql, without headers */
  async sql(text: string): Promise<string> {
    const { code, stdout, stderr } = await run("psql", ["-X", "-q", "-A", "-t", "-c", text, this.dsn]);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  }

  async addInstance(name: string, options: InstanceOptions = {}): Promise<Instance> {
    const dsn = new URL(this.#dsn ?? "postgres://127.0.0.1:9/none");
    const relay = await startTcpRelay(Number(dsn.port));
    dsn.port = String(relay.port);
    const s3 = await startS3Proxy(this.#bucket?.endpoint ?? "http://127.0.0.1:9");
    if (!this.#hasConditions) s3.inject(["put", "complete", "delete"], { withoutConditions: this.bucket });
    this.#ended.push(relay, s3);
    const port = options.port ?? (await freePort());
    const svc = await startSvc({
      codeHost: this.host,
      dataDir: join(this.folder.path, name),
      port,
      ...(options.program !== undefined && { program: options.program }),
      env: {
        ...(this.#postgres !== undefined && {
          SVC_DATABASE_DRIVER: "postgres",
          SVC_DATABASE_DSN: dsn.href,
        }),
        ...(this.#bucket !== undefined && bucketEnvironment(this.#bucket, s3.endpoint)),
        SVC_ENCRYPTION_KEY: ENCRYPTION_KEY,
        SVC_DEV_HOST_TOKEN: HOST_TOKEN,
        ...options.env,
      },
    });
    const owner = this.#postgres === undefined ? name : "";
    if (!this.#sessions.has(owner)) this.#sessions.set(owner, await svc.signIn());
    const instance: Instance = {
      name,
      svc,
      relay,
      s3,
      kill: () => {
        svc.kill();
        this.#instances.delete(instance);
        return async (env) => {
          await this.#drop(instance);
          return this.addInstance(name, { ...options, port, env: { ...options.env, ...env } });
        };
      },
    };
    this.#instances.add(instance);
    return instance;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#instances].map(async ({ svc }) => svc.stop()));
    for (const each of this.#ended) await each.stop();
    await Promise.all([this.host.stop(), this.#postgres?.stop(), this.#bucket?.stop()]);
    await this.folder.remove();
  }

  /** From now on the bucket honours conditions on writes, for all instances. */
  upgradeBucket(): void {
    this.#hasConditions = true;
    for (const { s3 } of this.#instances) s3.heal();
  }

  /** Ends an instance as a service manager does. */
  async stopInstance(instance: Instance): Promise<void> {
    this.#instances.delete(instance);
    await this.#drop(instance);
  }

  async send(svc: Svc, method: string, path: string, body?: unknown, token?: string): Promise<Response> {
    return sendJson(svc.url + path, { method, token: token ?? this.#sessionAt(svc), body });
  }

  async call<T>(svc: Svc, method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.send(svc, method, path, body);
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  /** Lists a repository. @returns its id */
  async list(svc: Svc, name = "widgets"): Promise<string> {
    const fields = { owner: "acme", name };
    return (await this.call<{ id: string }>(svc, "POST", "/api/cached-repos", fields)).id;
  }

  /** Clones acme/widgets. @param token default: the one of the code host @returns how the fetch counted, or undefined if it failed */
  async clone(svc: Svc, token = HOST_TOKEN): Promise<"hit" | "miss" | "uncached" | undefined> {
    const before = await fetchCounts(svc);
    if ((await this.tryClone(addressOf(svc.url, "widgets", token), ["--mirror"])) === undefined)
      return undefined;
    const after = await fetchCounts(svc);
    if (after.hit > before.hit) return "hit";
    return after.miss > before.miss ? "miss" : "uncached";
  }

  /** Clones with stock git. @returns the new folder, or undefined if it failed */
  async tryClone(address: string, args: readonly string[]): Promise<string | undefined> {
    const target = join(this.folder.path, `clone-${++this.#clones}`);
    const { code } = await run("git", ["clone", "-q", ...args, address, target], { env: gitEnvironment() });
    return code === 0 ? target : undefined;
  }

  /**
   * Clones all of a repository, and compares it with the code host's.
   *
   * @param path of the repository there; default: that of acme/widgets
   * @param args more arguments of `git clone`
   */
  async cloneRight(
    { svc }: Instance,
    name = "widgets",
    path = this.path,
    args: readonly string[] = [],
  ): Promise<void> {
    const folder = await this.tryClone(addressOf(svc.url, name), ["--mirror", ...args]);
    assert.ok(folder !== undefined, svc.log().slice(-3000));
    assert.equal(await contentOf(folder), await contentOf(path), `content of ${name}`);
  }

  /** Number of fetches that the code host got. */
  fetches(): number {
    return this.host.calls.filter(({ command }) => command === "fetch").length;
  }

  /** The caller must close it. */
  bucketReader(): BucketReader {
    return new BucketReader({
      server: this.bucket,
      hostUrl: this.host.url,
      prefix: PREFIX,
      encryptionKey: ENCRYPTION_KEY,
      folder: this.folder.path,
      ...(this.#hasPointers && { manifestName: async (owner, name) => this.#manifestName(owner, name) }),
    });
  }

  /** Waits until the bucket has what an instance has of a repository. */
  async uploaded({ svc }: Instance, name = "widgets"): Promise<void> {
    await until(async () => {
      const listed = await this.call<
        { name: string; stats: { bucket: { size_bytes: number | null; waiting: number } | null } }[]
      >(svc, "GET", "/api/cached-repos");
      const bucket = listed.find((each) => each.name === name)?.stats.bucket;
      return bucket?.waiting === 0 && (bucket.size_bytes ?? 0) > 0;
    });
  }

  /** Waits until an instance uses the bucket and the database. */
  async ready({ svc }: Instance): Promise<void> {
    await until(
      async () => {
        // Each instance has a proxy of its own before the bucket, so /readyz names the endpoints, which differ. Earlier versions call the
        // bucket object store.
        const text = await (await fetch(`${svc.url}/readyz`)).text();
        return text.startsWith("ready\n") && !/^(?:bucket|object store|degraded): /m.test(text);
      },
      () => svc.log().slice(-2000),
    );
  }

  /** Name of the current manifest of a repository in a bucket without conditions. */
  async #manifestName(owner: string, name: string): Promise<string | undefined> {
    const key = `${new URL(this.host.url).host}/${owner}/${name}`;
    const found = await this.sql(`SELECT name FROM manifest_pointers WHERE key = '${key}'`);
    return found === "" ? undefined : found;
  }

  async #drop({ svc, relay, s3 }: Instance): Promise<void> {
    await svc.stop().catch(() => undefined);
    relay.stop();
    await s3.stop();
  }

  #sessionAt({ dataDir }: Svc): string {
    return this.#sessions.get(dataDir.slice(this.folder.path.length + 1)) ?? this.admin;
  }
}

/** Settings of an instance whose wall clock is ahead. @param ms may be negative */
export function shiftedClock(ms: number): Record<string, string> {
  return { NODE_OPTIONS: `--import=${SHIFTED_CLOCK}`, SHIFT_MS: String(ms) };
}

/** Settings with which an instance uses the bucket. @param endpoint of the server or a proxy before it */
export function bucketEnvironment(bucket: S3Server, endpoint: string): Record<string, string> {
  return {
    SVC_CACHE_OBJECT_BUCKET: bucket.bucket,
    SVC_CACHE_OBJECT_REGION: bucket.region,
    SVC_CACHE_OBJECT_ENDPOINT: endpoint,
    SVC_CACHE_OBJECT_ACCESS_KEY_ID: bucket.accessKeyId,
    SVC_CACHE_OBJECT_SECRET_ACCESS_KEY: bucket.secretAccessKey,
    SVC_CACHE_STORAGE_PATH: PREFIX,
  };
}

/** Address of a repository of acme for git. */
export function addressOf(url: string, name: string, token = HOST_TOKEN): string {
  return `${url.replace("://", `://x:${token}@`)}/acme/${name}.git`;
}

async function fetchCounts({ metricsUrl }: Svc): Promise<{ hit: number; miss: number }> {
  const text = await (await fetch(metricsUrl)).text();
  const [hit = NaN, miss = NaN] = ["hit", "miss"].map((result) =>
    Number(new RegExp(`^svc_cache_fetch_total\\{result="${result}"\\} (\\d+)$`, "m").exec(text)?.[1]),
  );
  return { hit, miss };
}

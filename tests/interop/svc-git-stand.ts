import assert from "node:assert/strict";
import type { GitAction } from "../../apps/svc/src/scopes/required-permissions.ts";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Secret, systemClock, type Clock, type LogFields, type Logger } from "@devplat/base";
import { DELIM_PKT, FLUSH_PKT, encodePktLine } from "@devplat/git-protocol";
import {
  git,
  gitEnvironment,
  run,
  startCodeHost,
  tempFolder,
  type CodeHost,
  type Finished,
} from "@devplat/testkit";
import { PROBES_PER_MINUTE } from "../../apps/svc/src/access/probe-limit.ts";
import { testCache } from "../../apps/svc/src/assemble/cache.test-kit.ts";
import type { CacheSettings } from "../../apps/svc/src/assemble/cache-parts.ts";
import { assembleGit } from "../../apps/svc/src/assemble/git.ts";
import type { CacheService } from "../../apps/svc/src/cache/cache-service.ts";
import type { CachePolicies, CachePolicy } from "../../apps/svc/src/cache/policy.ts";
import { ServiceToken } from "../../apps/svc/src/cache/warming/warm-credential.ts";
import { BODY_IDLE_MS } from "../../apps/svc/src/git/body/body-reader.ts";
import { UpstreamConnections } from "../../apps/svc/src/upstream/upstream-connections.ts";
import { Upstream } from "../../apps/svc/src/upstream/upstream.ts";
import { WarmUpstream } from "../../apps/svc/src/git/warm-upstream.ts";
import { createListener } from "../../apps/svc/src/http/server/listener.ts";
import { VirtualHosts } from "../../apps/svc/src/http/routing/virtual-host.ts";
import { Metrics } from "../../apps/svc/src/telemetry/metrics.ts";
import type { CredentialCheck } from "../../apps/svc/src/tokens/admission.ts";

export interface StandOptions {
  readonly grantSeconds?: number;
  /** Time as the access check sees it. */
  readonly clock?: Clock;
  /** Time as the cache sees it: of refs that were shown, and of seeds. */
  readonly cacheClock?: Clock;
  /** Credential with which {@link PROXY_TOKEN} is renewed after a 401 of the code host. */
  readonly renewed?: string;
  /** Whether the code host lets fetches name refs. Default true; GitHub does not offer it. */
  readonly refInWant?: boolean;
  readonly tipsSeconds?: number;
  readonly strictLsRefs?: boolean;
  readonly gitCommandBytes?: number;
  readonly bodyIdleMs?: number;
  readonly probesPerMinute?: number;
  readonly maxUpstreamFetches?: number;
  readonly queueSeconds?: number;
  readonly queueSilentSeconds?: number;
  /** Size of a response that waits for a place. Default: none does. */
  readonly heavyBytes?: number;
  readonly maxHeavyResponses?: number;
  readonly keepAliveMs?: number;
  readonly firstByteMs?: number;
  readonly fill?: "full" | "wants";
  readonly fillMaxMb?: number;
  /** `cache.service_token`: changes are fetched ahead, without delay. */
  readonly serviceToken?: string;
  readonly maxTotalMb?: number;
  readonly dropUnusedAfterMs?: number;
  readonly cacheEnabled?: boolean;
  /** The code host of another stand, which stops it. Default: an own one. */
  readonly codeHost?: CodeHost;
  /** The bucket behind the cache. Default: none. */
  readonly objectTier?: CacheSettings["objectTier"];
  readonly storagePath?: string;
  readonly hostUrl?: string;
  readonly managementHost?: string;
  /** Repositories of `org` that are listed before the start. */
  readonly listed?: readonly string[];
}

/** A plain answer to a plain request. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  readonly text: string;
}

export interface PostOptions {
  readonly headers?: Record<string, string>;
  readonly method?: string;
  readonly body?: Buffer | string;
}

/** The git side of the service, put together in this process in front of a code host. */
export interface Stand {
  readonly codeHost: CodeHost;
  readonly url: string;
  readonly storagePath: string;
  readonly cache: CacheService;
  readonly metrics: Metrics;
  readonly log: LogFields[];
  readonly access: LogFields[];
  readonly actions: (GitAction | undefined)[];
  list(owner: string, name: string, options?: Partial<CachePolicy>): void;
  unlist(owner: string, name: string): void;
  policy(owner: string, name: string): CachePolicy | undefined;
  /** Runs stock git in a folder of its own; `clone` and the like. */
  git(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Finished>;
  folder(name: string): string;
  ask(path: string, options?: PostOptions): Promise<Answer>;
  /** The body of a v2 request. */
  command(command: string, args: readonly string[], capabilities?: readonly string[]): Buffer;
  post(repository: string, body: Buffer, headers?: Record<string, string>): Promise<Answer>;
  /** The value of a metric's series; 0 if it is not there. */
  metric(series: string): Promise<number>;
  /** Calls of a v2 command that reached the code host. */
  upstream(command: string): number;
  /** Fetches that have asked the cache how they are answered. */
  planned(): number;
  stop(): Promise<void>;
}

export const PROXY_TOKEN = "svcx_test-only-token";

export async function startStand(options: StandOptions = {}): Promise<Stand> {
  const codeHost =
    options.codeHost ??
    (await startCodeHost(options.refInWant === undefined ? {} : { refInWant: options.refInWant }));
  const folder = await tempFolder("svc-git");
  const policies = new Map<string, CachePolicy>();
  const keyOf = (owner: string, name: string): string => `${owner}/${name}`.toLowerCase();
  const add = (owner: string, name: string, given: Partial<CachePolicy> = {}): void => {
    const settings = { timeoutSeconds: 30, maxCacheSizeMb: undefined, seed: true, bundles: false };
    const base = { id: "1", owner, name, enabled: true, ...settings };
    policies.set(keyOf(owner, name), { ...base, ...given });
  };
  for (const name of options.listed ?? []) add("org", name);
  const list: CachePolicies = {
    find: (owner, name) => policies.get(keyOf(owner, name)),
    all: () => [...policies.values()],
  };
  const log: LogFields[] = [];
  const access: LogFields[] = [];
  const actions: (GitAction | undefined)[] = [];
  const credentials: CredentialCheck = {
    admit: (authorization, action) => {
      actions.push(action);
      const decoded = Buffer.from((authorization ?? "").replace(/^Basic /, ""), "base64").toString();
      if (decoded.includes("svcx_") || authorization?.includes("svcx_") === true) {
        if (action === undefined || !decoded.includes(PROXY_TOKEN)) {
          const headers = { "WWW-Authenticate": 'Basic realm="svc"' };
          return Promise.resolve({ kind: "refuse", status: 401, headers, message: "unknown token" });
        }
        const stored = Buffer.from("x-access-token:stored-secret").toString("base64");
        const principal = { kind: "proxy_token", login: "alice", tokenId: "t1" } as const;
        const { renewed } = options;
        return Promise.resolve({
          kind: "forward",
          authorization: `Basic ${stored}`,
          principal,
          ...(renewed === undefined ? {} : { renew: () => Promise.resolve(renewed) }),
        });
      }
      const kind = authorization === undefined ? "anonymous" : "foreign";
      const principal = { kind, login: undefined, tokenId: undefined } as const;
      return Promise.resolve({ kind: "forward", authorization, principal });
    },
    authenticate: () =>
      Promise.resolve({
        kind: "refuse",
        status: 401,
        headers: {},
        message: "no token opens LFS on this stand",
      }),
    carriesOwnToken: (text) => /svc[rxa]_/.test(text),
    foreignCredentialRefusal: () => undefined,
  };
  const hostUrl = options.hostUrl ?? codeHost.url;
  const metrics = new Metrics({
    version: "0.0.0",
    processMetrics: false,
    activeRepositories: () => list.all().filter((policy) => policy.enabled).length,
  });
  const storagePath = options.storagePath ?? join(folder.path, "cache");
  const logger = collect(log);
  const warmUpstream = new Upstream({ hostUrl, metrics });
  const MEGABYTE = 2 ** 20;
  const parts = testCache({
    storagePath,
    hostUrl,
    policies: list,
    ...(options.tipsSeconds === undefined ? {} : { tipsSeconds: options.tipsSeconds }),
    ...(options.maxUpstreamFetches === undefined ? {} : { maxUpstreamFetches: options.maxUpstreamFetches }),
    queueRules: () => ({
      silentMs: (options.queueSilentSeconds ?? 10) * 1000,
      queueMs: (options.queueSeconds ?? 60) * 1000,
    }),
    ...(options.heavyBytes === undefined ? {} : { heavyBytes: () => options.heavyBytes ?? 0 }),
    ...(options.maxHeavyResponses === undefined ? {} : { maxHeavyResponses: options.maxHeavyResponses }),
    ...(options.fill === undefined ? {} : { fill: options.fill }),
    fillMaxBytes: (options.fillMaxMb ?? Infinity) * MEGABYTE,
    ...(options.firstByteMs === undefined ? {} : { firstByteMs: options.firstByteMs }),
    ...(options.keepAliveMs === undefined ? {} : { keepAliveMs: options.keepAliveMs }),
    maxTotalBytes: (options.maxTotalMb ?? Infinity) * MEGABYTE,
    dropUnusedAfterMs: options.dropUnusedAfterMs ?? Infinity,
    strictLsRefs: options.strictLsRefs ?? false,
    objectTier: options.objectTier,
    warming:
      options.serviceToken === undefined
        ? undefined
        : {
            source: new WarmUpstream(warmUpstream, "", "svc/0.0.0"),
            credential: new ServiceToken(new Secret(options.serviceToken)),
          },
    metrics,
    logger,
    ...(options.cacheClock === undefined ? {} : { clock: options.cacheClock }),
  });
  const { cache, service } = parts;
  let planned = 0;
  const plan = cache.plan.bind(cache);
  cache.plan = async (job) => {
    planned++;
    return plan(job);
  };
  await service.prepare();
  const routes = assembleGit({
    hostUrl,
    connections: new UpstreamConnections(),
    credentials,
    policies: list,
    cache: options.cacheEnabled === false ? undefined : parts,
    changes: { isCurrent: true, refresh: async () => undefined },
    grantSeconds: options.grantSeconds ?? 30,
    strictLsRefs: options.strictLsRefs ?? false,
    gitCommandBytes: options.gitCommandBytes ?? 64 * MEGABYTE,
    bodyIdleMs: options.bodyIdleMs ?? BODY_IDLE_MS,
    probesPerMinute: options.probesPerMinute ?? PROBES_PER_MINUTE,
    userAgent: "svc/0.0.0",
    metrics,
    logger,
    clock: options.clock ?? systemClock,
  });
  const listener = createListener({
    virtualHosts: new VirtualHosts({
      baseUrl: "http://svc.example:8080",
      managementHost: options.managementHost,
      hostUrl: "http://code.example",
      apiUrl: "http://api.code.example",
    }),
    git: routes,
    management: (_request, response) =>
      void response.writeHead(200, { "X-Management": "yes" }).end("management"),
    metrics,
    accessLog: collect(access),
    logger,
    withCache: options.cacheEnabled !== false,
    ownToken: (text) => credentials.carriesOwnToken(text),
  });
  const { server } = listener;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;

  const ask = (path: string, asked: PostOptions = {}): Promise<Answer> => send(port, path, asked);
  return {
    codeHost,
    url,
    storagePath,
    cache: service,
    metrics,
    log,
    access,
    actions,
    list: add,
    policy: (owner, name) => list.find(owner, name),
    unlist: (owner, name) => void policies.delete(keyOf(owner, name)),
    git: (args, env) =>
      run("git", args, { cwd: folder.path, env: { ...gitEnvironment(), ...env }, timeoutMs: 120_000 }),
    folder: (name) => join(folder.path, name),
    ask,
    command,
    post: (repository, body, headers = {}) =>
      ask(`/${repository}/git-upload-pack`, {
        method: "POST",
        body,
        headers: {
          "Content-Type": "application/x-git-upload-pack-request",
          "Git-Protocol": "version=2",
          ...headers,
        },
      }),
    metric: async (series) => {
      const { body } = await metrics.render();
      const line = body.split("\n").find((text) => text.startsWith(`${series} `));
      return line === undefined ? 0 : Number(line.slice(series.length + 1));
    },
    upstream: (name) => codeHost.calls.filter((call) => call.command === name).length,
    planned: () => planned,
    stop: async () => {
      listener.closeAll();
      server.close();
      await routes.close();
      await warmUpstream.close();
      if (options.codeHost === undefined) await codeHost.stop();
      await service.settled();
      await folder.remove();
    },
  };
}

export function command(
  name: string,
  args: readonly string[],
  capabilities: readonly string[] = ["object-format=sha1"],
): Buffer {
  return Buffer.concat([
    encodePktLine(`command=${name}\n`),
    ...capabilities.map((text) => encodePktLine(`${text}\n`)),
    ...(args.length > 0 ? [DELIM_PKT, ...args.map((text) => encodePktLine(`${text}\n`))] : []),
    FLUSH_PKT,
  ]);
}

/** The response of stock git to these bytes. */
export async function gitServes(path: string, body: Buffer): Promise<Buffer> {
  const served = await run("git", ["upload-pack", "--stateless-rpc", path], {
    env: gitEnvironment({ GIT_PROTOCOL: "version=2" }),
    input: body,
  });
  assert.equal(served.code, 0, served.stderr);
  return served.stdoutBytes;
}

export const basic = (token: string): string => `Basic ${Buffer.from(`user:${token}`).toString("base64")}`;

/** Every reference and every object of a clone, and that `git fsck` finds nothing. */
export async function contentOf(folder: string): Promise<string> {
  const refs = await git(["-C", folder, "for-each-ref", "--format=%(objectname) %(refname)"]);
  const objects = await git(["-C", folder, "cat-file", "--batch-all-objects", "--batch-check"]);
  await git(["-C", folder, "fsck", "--full", "--strict"]);
  return `${refs}\n${objects}`;
}

/** Sends bytes over a raw connection and gives all that comes back within a time. */
export async function rawExchange(url: string, bytes: string, ms: number): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const parts: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => void parts.push(chunk));
  socket.on("error", () => undefined);
  socket.write(bytes);
  await Promise.race([once(socket, "close"), new Promise((resolve) => setTimeout(resolve, ms))]);
  socket.destroy();
  return Buffer.concat(parts).toString("latin1");
}

function send(port: number, path: string, options: PostOptions): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const body = options.body;
    const outgoing = httpRequest(
      {
        host: "127.0.0.1",
        port,
        path,
        method: options.method ?? "GET",
        headers: options.headers ?? {},
        agent: false,
      },
      (response) => {
        const parts: Buffer[] = [];
        response.on("data", (chunk: Buffer) => void parts.push(chunk));
        response.on("error", () => undefined);
        response.on("close", () => {
          const whole = Buffer.concat(parts);
          const plain = response.headers["content-encoding"] === "gzip" ? gunzipSync(whole) : whole;
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: plain,
            text: plain.toString("latin1"),
          });
        });
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function collect(lines: LogFields[]): Logger {
  const add = (fields: LogFields, message: string): void => void lines.push({ ...fields, message });
  const logger: Logger = { debug: add, info: add, warn: add, error: add, child: () => logger };
  return logger;
}

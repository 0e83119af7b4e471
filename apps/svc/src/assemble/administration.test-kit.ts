import type { AuditRecord } from "../audit/audit-store.ts";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock, type Clock, type Logger, createLogger } from "@devplat/base";
import { assembleAdministration } from "./administration.ts";
import type { Operation } from "../admin-api/operation.ts";
import { AuditRecorder } from "../audit/audit-recorder.ts";
import type { CacheStats, WarmStart } from "../cache/policy.ts";
import { CachedRepositories } from "../administration/repositories/cached-repositories.ts";
import { LiveConfig } from "../config/live-config.ts";
import { configSchema } from "../config/schema.ts";
import { Health } from "../health.ts";
import type { LiveDashboard } from "../admin-ui/dashboard/live-dashboard.ts";
import { Activity } from "../telemetry/activity.ts";
import { assembleIdentity } from "./identity.ts";
import { OwnAddress } from "../own-address.ts";
import { memoryStore } from "../storage/memory.test-kit.ts";
import type { ReportedInstance } from "../storage/coordination-store.ts";
import type { Store } from "../storage/store.ts";
import { ScopeAuthorizers } from "../scopes/scope-authorizers.ts";
import { TokenLookup } from "../tokens/token-lookup.ts";

export interface AdministrationOptions {
  /** Default true. */
  readonly developmentMode?: boolean;
  readonly baseUrl?: string;
  /** The `host` section of the configuration. */
  readonly host?: Readonly<Record<string, unknown>>;
  readonly clock?: Clock;
  readonly admins?: readonly string[];
  /** Answer of the code host about a repository. Default: readable. */
  readonly reach?: (name: string) => "readable" | "refused" | "moved";
  readonly stats?: (owner: string, name: string) => Partial<CacheStats>;
  /** Instances on the database; the id of this one is `this`. Default: those in the store. */
  readonly instances?: () => readonly ReportedInstance[];
  /** Result of warming `owner/name`. Default: there is no token for it. */
  readonly warm?: (repository: string) => WarmStart;
}

/** The real management surface on loopback, with the cache and the code host played. */
export interface TestAdministration {
  readonly url: string;
  readonly store: Store;
  readonly repositories: CachedRepositories;
  readonly operations: readonly Operation[];
  readonly activity: Activity;
  readonly dashboard: LiveDashboard;
  /** `owner/name` of each purge. */
  readonly purged: string[];
  /** Audited events, newest first. */
  audited(): Promise<readonly AuditRecord[]>;
  log(): string;
  /** A session token from the test login. */
  session(username: string, role: "user" | "admin"): Promise<string>;
  stop(): Promise<void>;
}

export async function startAdministration(options: AdministrationOptions = {}): Promise<TestAdministration> {
  const lines: string[] = [];
  const logger: Logger = createLogger({
    format: "json",
    destination: { write: (line) => void lines.push(line) },
  });
  const config = configSchema.parse({
    dev: { mode: options.developmentMode ?? true },
    cache: { enabled: true },
    admins: options.admins ?? [],
    host: options.host ?? {},
  });
  const store = await memoryStore();
  const repositories = await CachedRepositories.open(store.cachedRepositories, systemClock);
  const address = new OwnAddress(options.baseUrl);
  const purged: string[] = [];
  const clock = options.clock ?? systemClock;
  const audit = new AuditRecorder({
    store: store.audit,
    auditLog: logger,
    logger,
    clock,
    onRecorded: () => undefined,
    onDropped: () => undefined,
  });
  const activity = new Activity(clock);
  const health = new Health({
    activity,
    ping: async () => store.ping(),
    cacheFolder: undefined,
    bucket: undefined,
    differences: () => ({ settings: [], keyIds: [] }),
    certificateEnd: () => undefined,
    codeHost: "code.example",
    clock,
  });
  const { listener, operations, dashboard } = assembleAdministration({
    activity,
    health,
    overload: { isTurningAway: () => Promise.resolve(false) },
    live: new LiveConfig(config),
    store,
    repositories,
    maintenance: {
      stats: (owner, name) => ({ ...NO_STATS, ...options.stats?.(owner, name) }),
      look: async () => undefined,
      purge: async (owner, name) => void purged.push(`${owner}/${name}`),
      isPurged: async () => true,
      warm: async (owner, name) => options.warm?.(`${owner}/${name}`) ?? "no_credential",
    },
    lookup: new TokenLookup(store, clock),
    authorizers: new ScopeAuthorizers("github"),
    identity: await assembleIdentity({ config, store, audit, clock, logger }),
    audit,
    probe: { ask: async (_owner, name) => options.reach?.(name) ?? "readable" },
    address,
    renderMetrics: async () => ({ contentType: "text/plain; version=0.0.4", body: "svc_build_info 1\n" }),
    registry: { id: "this", list: async () => options.instances?.() ?? store.instances.list() },
    isStopping: () => false,
    version: "0.0.0-test",
    clock,
    logger,
  });
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  address.bound(port);
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    store,
    repositories,
    operations,
    purged,
    activity,
    dashboard,
    log: () => lines.join(""),
    async audited() {
      await audit.flush();
      return (await store.audit.query({ limit: 1000 })).records;
    },
    async session(username, role) {
      const answer = await fetch(`${url}/auth/test-login`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ username, role }),
      });
      return ((await answer.json()) as { session_token: string }).session_token;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await store.close();
    },
  };
}

export const NO_STATS: CacheStats = {
  sizeBytes: 0,
  bucket: undefined,
  responseFiles: 0,
  references: 0,
  framedBytes: 0,
  referredBytes: 0,
  packs: 0,
  seed: undefined,
  hits: 0,
  misses: 0,
  bytesSaved: 0,
  secondsSaved: 0,
  lastFetchAt: undefined,
  lastError: undefined,
};

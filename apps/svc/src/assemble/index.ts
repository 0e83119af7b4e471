import { hostname } from "node:os";
import { systemClock, type Logger } from "@devplat/base";
import { LoopMonitor } from "@devplat/base/loop-monitor";
import { assembleCache } from "./cache.ts";
import { assembleCoordination, assembleEpochs } from "./coordination.ts";
import { allowedLogins, assembleIdentity } from "./identity.ts";
import { AuditRecorder } from "../audit/audit-recorder.ts";
import { BRAND } from "../brand.ts";
import { Overload } from "../cache/admission/overload.ts";
import { CachedRepositories } from "../administration/repositories/cached-repositories.ts";
import { cacheFolder } from "../config/cache-folder.ts";
import { formatListen, reachableAddress } from "../config/listen.ts";
import type { LiveConfig } from "../config/live-config.ts";
import type { Config } from "../config/schema.ts";
import type { ActivatedSockets } from "../config/socket-activation.ts";
import { reportingStore } from "../coordination/reporting-store.ts";
import { SvcError } from "../errors.ts";
import { Housekeeping } from "./housekeeping.ts";
import { ApiAddresses } from "../http/routing/api-address.ts";
import { ClientAddresses } from "../http/request/client-address.ts";
import { createListener } from "../http/server/listener.ts";
import { VirtualHosts } from "../http/routing/virtual-host.ts";
import { basePathOf } from "../http/routing/target.ts";
import type { CertificateFiles, TlsIdentities } from "../http/server/tls-identities.ts";
import { Late } from "../late.ts";
import { LateAdministration } from "./late-administration.ts";
import { Listening } from "./listeners.ts";
import { makeCacheFolder } from "./make-cache-folder.ts";
import type { ObjectStorage, ObjectStorageOptions } from "./object-storage.ts";
import { OwnAddress } from "../own-address.ts";
import { databaseSettings, encryptionKeySource } from "../storage/database-settings.ts";
import { encryptionKeys } from "../storage/encryption-key.ts";
import { openStore } from "../storage/open-store.ts";
import { Activity } from "../telemetry/activity.ts";
import { IdleCollector } from "../telemetry/idle-collector.ts";
import { Metrics } from "../telemetry/metrics.ts";
import type { OpenTelemetry } from "../telemetry/otel.ts";
import { createMetricsListener } from "./metrics-listener.ts";
import { AddressList } from "@devplat/config/address-list";
import { holdsCredential } from "../credentials/token-format.ts";
import { TokenLookup } from "../tokens/token-lookup.ts";
import { TokenUses } from "../tokens/token-uses.ts";
import { UpstreamConnections } from "../upstream/upstream-connections.ts";

export interface AssemblyOptions {
  readonly live: LiveConfig;
  /** Whether a database that is behind is migrated now. */
  readonly migrate: boolean;
  readonly version: string;
  /** Sockets that a service manager opened. They replace the configured addresses. */
  readonly sockets?: ActivatedSockets;
  /** Whether a bucket that cannot be used refuses the start. Default false. */
  readonly requireObjectStore?: boolean;
  /** Undefined: traces are not exported. */
  readonly telemetry?: OpenTelemetry | undefined;
  readonly logger: Logger;
}

const NO_SOCKETS: ActivatedSockets = { main: undefined, metrics: undefined };

/** Longest time of one turn of a loop in the background. Each request of a turn to the database has a shorter limit. */
const MAX_TURN_MS = 10 * 60 * 1000;

/** The whole service, built and not yet listening. */
export interface Service {
  /** Says which part in the background makes no progress any more. Only a new start helps then. */
  fault(): string | undefined;
  /**
   * Binds both listeners and starts what runs in the background.
   *
   * @returns where it listens, for the log
   * @throws SvcError `listen_failed`; nothing listens then
   */
  start(): Promise<{ readonly baseUrl: string; readonly metrics: string }>;
  /** Finishes running requests for up to `server.drain_seconds`, then ends everything. Never rejects. */
  stop(): Promise<void>;
}

/**
 * Builds every part of the service and hands them to each other: only the files of this folder do that.
 *
 * @throws SvcError `encryption_key`, `database_unavailable`, `database_behind`, `database_ahead`
 */
export async function assemble({
  live,
  migrate,
  version,
  sockets = NO_SOCKETS,
  requireObjectStore = false,
  telemetry,
  logger,
}: AssemblyOptions): Promise<Service> {
  const clock = systemClock;
  const loops = new LoopMonitor(clock);
  const config = live.current;
  const developmentMode = config.dev.mode;
  let databaseResponded = (): void => undefined;
  const opened = await openStore(
    databaseSettings(config),
    async () => encryptionKeys(encryptionKeySource(config)),
    migrate || developmentMode,
  );
  const store = reportingStore(opened, () => databaseResponded());
  const repositories = await CachedRepositories.open(store.cachedRepositories, clock, config.cache.seeds);
  const activity = new Activity(clock);
  const metrics = new Metrics({
    version,
    onUpstream: (status) => activity.upstream(status),
    activeRepositories: () =>
      config.cache.enabled ? repositories.all().filter(({ enabled }) => enabled).length : 0,
  });
  const audit = new AuditRecorder({
    store: store.audit,
    auditLog: logger.child({ log: "audit" }),
    logger,
    clock: loops.clockOf("audit log", MAX_TURN_MS),
    onRecorded: (event) => activity.audited(event),
    onDropped: (count) => metrics.auditDropped(count),
  });
  const lookup = new TokenLookup(store, clock);
  const uses = new TokenUses(store.tokens, loops.clockOf("uses of tokens", MAX_TURN_MS), logger);
  const certificates = certificateFiles(config);
  const tls = certificates.length === 0 ? undefined : await tlsIdentities(certificates);
  const address = new OwnAddress(config.server.base_url, tls === undefined ? "http" : "https");
  const connections = new UpstreamConnections({ caFile: config.host.ca_file, environment: process.env });
  await connections.check(config.host.url);
  const identity = await assembleIdentity({
    config,
    store,
    audit,
    clock,
    logger,
    http: connections.http,
  });
  const { app_id: appId, private_key: privateKey } = config.host;
  if (appId !== undefined && privateKey !== undefined) {
    const { assembleApps } = await import("./logins.ts");
    await assembleApps({ identity, store, audit, clock, logger }).seed(appId, privateKey);
  }
  const userAgent = `${BRAND.command}/${version}`;
  const storagePath = cacheFolder(config);
  if (config.cache.enabled) await makeCacheFolder(config, storagePath);
  // Loaded only where it is configured.
  const accel =
    config.server.accel === undefined
      ? undefined
      : await (await import("./accel.ts")).assembleAccel(config, storagePath, metrics, logger);
  const epochs = assembleEpochs({ config, store, storagePath, logger }, async (owner, name, options) =>
    cache.service.purge(owner, name, options),
  );
  // Loaded only where it is configured.
  const objectStorage =
    config.cache.enabled && config.cache.object_bucket !== undefined
      ? await assembleObjectTier({ config, store, epochs, storagePath, metrics, clock, logger })
      : undefined;
  const cache = assembleCache({
    live,
    storagePath,
    objectStorage,
    repositories,
    installations: identity.installations,
    connections,
    userAgent,
    metrics,
    clock,
    logger,
  });
  let stopping = false;
  let listensAt: string | undefined;
  const { changes, registry, maintenance } = assembleCoordination({
    config,
    activity,
    version,
    address: () => listensAt,
    manifestKeyId: objectStorage?.keyId,
    isReady: () => !stopping && !cache.told.isFull,
    registryClock: loops.clockOf("registry of instances", MAX_TURN_MS),
    store,
    epochs,
    repositories,
    cache: cache.service,
    clock,
    logger,
  });
  databaseResponded = () => changes.databaseResponded();
  const { codeHost } = identity;
  const apiAddresses = new ApiAddresses(codeHost);
  const authorizers = new Late(async () => {
    const { ScopeAuthorizers } = await import("../scopes/scope-authorizers.ts");
    return new ScopeAuthorizers(codeHost.kind);
  });
  // Built at the first request for a repository or the API of the code host.
  const proxy = new Late(async () => {
    const { assembleProxy } = await import("./proxy.ts");
    const { AuditedGit } = await import("../git/audited-git.ts");
    const parts = assembleProxy({
      live,
      identity,
      repositories,
      cache,
      changes,
      accel: accel?.accel,
      lookup,
      uses,
      counts: store.oneTime,
      authorizers: await authorizers.get(),
      connections,
      address,
      audit,
      userAgent,
      metrics,
      clock,
      logger,
    });
    return { ...parts, auditedGit: new AuditedGit(parts.git, audit) };
  });
  // Built at the first request for pages or API: a service that only serves clones needs none of their modules.
  const administration = new LateAdministration(async () => {
    const { assembleAdministration } = await import("./administration.ts");
    const { Health } = await import("../health.ts");
    const { GitRepositoryProbe } = await import("../administration/repositories/repository-probe.ts");
    return assembleAdministration({
      live,
      store,
      repositories,
      maintenance,
      audit,
      lookup,
      authorizers: await authorizers.get(),
      identity,
      probe: new GitRepositoryProbe(codeHost, connections.http),
      address,
      renderMetrics: async () => metrics.render(),
      activity,
      health: new Health({
        activity,
        ping: async () => store.ping(),
        cacheFolder: config.cache.enabled ? storagePath : undefined,
        bucket: objectStorage?.report,
        differences: () => registry.differences,
        certificateEnd: () => tls?.notAfter,
        codeHost: new URL(config.host.url).host,
        clock,
      }),
      registry,
      overload: new Overload(cache.told, registry),
      isStopping: () => stopping,
      version,
      clock,
      logger,
    });
  });
  const clientAddresses = new ClientAddresses(new AddressList(config.server.trusted_proxies));
  const main = new Listening(
    () =>
      createListener({
        virtualHosts: new VirtualHosts({
          baseUrl: address.baseUrl,
          managementHost: config.server.management_host,
          hostUrl: config.host.url,
          apiUrl: codeHost.apiUrl,
          uploadsUrl: codeHost.uploadsUrl,
          apiPrefixes: apiAddresses.namedPrefixes,
        }),
        hostBasePath: basePathOf(config.host.url),
        addresses: clientAddresses,
        connections: {
          tls,
          http2: config.server.http2,
          proxyProtocol: config.server.proxy_protocol,
          max: config.server.max_connections,
          maxPerClient: config.limits.client_requests || undefined,
        },
        git: { handle: async (...request) => (await proxy.get()).auditedGit.handle(...request) },
        api: {
          accepts: (virtualHost, url) => apiAddresses.accepts(virtualHost, url),
          handle: async (...request) => (await proxy.get()).api.handle(...request),
        },
        accelProbe: accel?.probe,
        management: async (request, response) => administration.answer(request, response),
        metrics,
        telemetry,
        activity,
        accessLog: logger.child({ log: "access" }),
        logger,
        ...(config.dev.mode && !config.dev.mode_unsafe
          ? { answersHost: (host: string | undefined) => address.isOwnHost(host) }
          : {}),
        withCache: config.cache.enabled,
        ownToken: holdsCredential,
      }),
    "server.listen (SVC_SERVER_LISTEN)",
  );
  const metricsListening = new Listening(
    () => createMetricsListener(metrics),
    "metrics.listen (SVC_METRICS_LISTEN)",
  );
  const background: ((signal: AbortSignal) => Promise<void>)[] = [
    async (signal) => uses.run(signal),
    async (signal) => audit.run(signal),
    async (signal) => changes.run(signal),
    async (signal) => registry.run(signal),
    async (signal) => new IdleCollector(clock).run(signal),
    async (signal) =>
      new Housekeeping({
        store,
        clock: loops.clockOf("housekeeping", MAX_TURN_MS),
        logger,
        auditDays: config.audit.retention_days,
      }).run(signal),
    ...(config.cache.enabled ? [async (signal: AbortSignal) => cache.service.run(signal)] : []),
    ...(objectStorage === undefined ? [] : [async (signal: AbortSignal) => objectStorage.run(signal)]),
  ];
  // A subscriber that can refuse comes first.
  live.subscribe((next) => {
    const files = certificateFiles(next);
    if ((files.length === 0) !== (tls === undefined)) {
      throw new SvcError(
        "config_refused",
        "TLS can be turned on and off only with a restart (tls.certificates)",
      );
    }
    tls?.reload(files);
    identity.sessions.setAdmins(next.admins);
    repositories.seeds = next.cache.seeds;
    identity.allowed.setAllowed(allowedLogins(next), next.login.recheck_minutes * 60_000);
  });
  let inEffect = live.current;
  live.subscribe((next) => {
    // After a refused reload the previous configuration is applied again. That is not audited.
    if (next === inEffect) return;
    inEffect = next;
    audit.record({ action: "configuration.reloaded", outcome: "allowed", actor: { kind: "system" } });
  });
  const abort = new AbortController();
  let running: Promise<unknown> = Promise.resolve();

  return {
    fault: () => loops.fault(),

    async start() {
      const mainAddress = sockets.main ?? config.server.listen;
      const metricsAddress = sockets.metrics ?? config.metrics.listen;
      const loopbackOnly = developmentMode && !config.dev.mode_unsafe;
      try {
        // First: it may wait for a restore. Everything that is read before it may be the content that the restore replaces.
        await registry.register();
        if (requireObjectStore) await objectStorage?.require();
        if (config.cache.enabled) await cache.service.prepare();
        await changes.start();
        // The listener asks for the base address when it is made; port 0 is known only after.
        const mainHost = mainAddress.kind === "tcp" ? mainAddress.host : undefined;
        if (mainAddress.kind === "tcp") address.bound(mainAddress.port, mainHost);
        const metricsPort = await metricsListening.open(metricsAddress, loopbackOnly);
        const port = await main.open(mainAddress, loopbackOnly);
        address.bound(port, mainHost);
        listensAt = reachableAddress(mainAddress, port, hostname());
        running = Promise.all(background.map(async (run) => run(abort.signal)));
        const metricsHost = metricsAddress.kind === "tcp" ? (metricsAddress.host ?? "localhost") : "";
        return {
          baseUrl: address.baseUrl,
          metrics:
            metricsAddress.kind === "tcp"
              ? `http://${metricsHost}:${metricsPort}/metrics`
              : formatListen(config.metrics.listen),
        };
      } catch (error) {
        await Promise.all([main.close(0), metricsListening.close(0)]);
        await registry.remove();
        await store.close();
        throw error;
      }
    },

    // The reverse of the start: no new requests, the running ones finish, what serves them ends, the store last.
    async stop() {
      stopping = true;
      const ended = administration.close();
      const drained = clock.monotonic() + config.server.drain_seconds * 1000;
      await main.close(config.server.drain_seconds * 1000);
      await ended;
      await cache.service.drain(Math.max(0, drained - clock.monotonic()));
      abort.abort();
      await running.catch((error: unknown) => logger.error({ err: error }, "a background part failed"));
      await epochs.settled();
      await cache.service.settled();
      const made = await proxy.ifMade();
      await made?.git.close();
      await made?.apiUpstream.close();
      await connections.close();
      await cache.warmUpstream.close();
      await metricsListening.close(0);
      await objectStorage?.close();
      await audit.flush();
      await store.close();
    },
  };
}

function certificateFiles({ tls }: Config): CertificateFiles[] {
  return tls.certificates.map(({ cert_file, key_file }) => ({ certFile: cert_file, keyFile: key_file }));
}

async function assembleObjectTier({
  storagePath,
  ...options
}: Omit<ObjectStorageOptions, "localPath"> & { readonly storagePath: string }): Promise<
  ObjectStorage & { readonly localBytes: number }
> {
  const { assembleObjectStorage, localLimit } = await import("./object-storage.ts");
  const storage = await assembleObjectStorage({ ...options, localPath: storagePath });
  return { ...storage, localBytes: await localLimit(options.config, storagePath) };
}

/** Loaded only by a service that has certificates. */
async function tlsIdentities(files: readonly CertificateFiles[]): Promise<TlsIdentities> {
  const { TlsIdentities } = await import("../http/server/tls-identities.ts");
  return new TlsIdentities(files);
}

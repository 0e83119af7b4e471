import type { Clock, Logger } from "@devplat/base";
import { AccessCheck } from "../access/access-check.ts";
import { RefProbes } from "../access/ref-probe.ts";
import type { CachePolicies } from "../cache/policy.ts";
import type { ChangeWatcher } from "../coordination/change-watcher.ts";
import { BodyReaders } from "../git/body/body-reader.ts";
import { FetchCommand } from "../git/fetch-command.ts";
import { RequestCache } from "../git/body/request-cache.ts";
import { lfsBatchBodies } from "../git/lfs.ts";
import { LsRefsCommand } from "../git/ls-refs-command.ts";
import { Outcomes } from "../git/outcome.ts";
import { GitRoutes } from "../git/routes.ts";
import { UploadLimit } from "../git/upload-limit.ts";
import { UploadPack } from "../git/upload-pack.ts";
import { Late } from "../late.ts";
import { basePathOf } from "../http/routing/target.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { CredentialCheck } from "../tokens/admission.ts";
import type { UpstreamConnections } from "../upstream/upstream-connections.ts";
import { Upstream } from "../upstream/upstream.ts";
import type { Accel } from "../http/accel/accel.ts";
import type { CacheParts } from "./cache-parts.ts";

export interface GitAssemblyOptions {
  /** `host.url` */
  readonly hostUrl: string;
  /** How the code host is reached. */
  readonly connections: UpstreamConnections;
  readonly credentials: CredentialCheck;
  readonly policies: CachePolicies;
  /** Undefined: the cache feature is off, and everything passes through. */
  readonly cache: Pick<CacheParts, "cache" | "ensurer" | "seeds" | "objects" | "refs"> | undefined;
  readonly changes: Pick<ChangeWatcher, "isCurrent" | "refresh">;
  /** `cache.grant_seconds` */
  readonly grantSeconds: number;
  /** `server.accel`. Undefined: this service sends every response itself. */
  readonly accel?: Accel | undefined;
  /** `cache.strict_lsrefs` */
  readonly strictLsRefs: boolean;
  /** `limits.git_command_bytes` */
  readonly gitCommandBytes: number;
  /** Milliseconds of silence in a request's body. */
  readonly bodyIdleMs: number;
  /** Probes that one client may cause per minute. */
  readonly probesPerMinute: number;
  /** The `User-Agent` and `agent` of requests of the service's own, such as `svc/1.2.3`. */
  readonly userAgent: string;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Builds what answers git requests. */
export function assembleGit(options: GitAssemblyOptions): GitRoutes {
  const { hostUrl, credentials, policies, bodyIdleMs: idleMs, metrics, logger, clock } = options;
  const upstream = new Upstream({ hostUrl, metrics, network: options.connections });
  const outcomes = new Outcomes(metrics);
  const routes = {
    basePath: basePathOf(hostUrl),
    upstream,
    outcomes,
    credentials,
    policies,
    bodyLimits: { idleMs, uploads: new UploadLimit() },
    lfsBatches: lfsBatchBodies(idleMs),
    logger,
  };
  if (options.cache === undefined) return new GitRoutes({ ...routes, cached: undefined });
  const { cache, ensurer, seeds, objects, refs } = options.cache;
  const { grantSeconds, probesPerMinute, userAgent } = options;
  const probes = new RefProbes({ upstream, userAgent, clock });
  const access = new AccessCheck({ probes, refs, objects, clock, hostUrl, grantSeconds, probesPerMinute });
  const known = new RequestCache();
  const files = new Late(async () => {
    const { FileSender } = await import("../http/send-file/file-sender.ts");
    return new FileSender();
  });
  const { changes, strictLsRefs: strict } = options;
  const seed = new Late(async () => {
    const { SeedCommand } = await import("../git/seed/seed-command.ts");
    return new SeedCommand({
      upstream,
      access,
      cache,
      ensurer,
      userAgent,
      seeds,
      files,
      strict,
      metrics,
      clock,
    });
  });
  const uploadPack = new UploadPack({
    upstream,
    bodies: new BodyReaders({ maxBytes: options.gitCommandBytes, idleMs }),
    known,
    access,
    cache,
    outcomes,
    lsRefs: new LsRefsCommand({ upstream, access, outcomes, metrics }),
    fetch: new FetchCommand({
      upstream,
      access,
      cache,
      outcomes,
      known,
      files,
      accel: options.accel,
      logger,
    }),
    objectInfo: new Late(async () => {
      const { ObjectInfoCommand } = await import("../git/object-info/object-info-command.ts");
      return new ObjectInfoCommand({ upstream, access, objects, outcomes, strict });
    }),
    bundleUri: new Late(async () => {
      const { BundleUriCommand } = await import("../git/seed/bundle-uri-command.ts");
      return new BundleUriCommand({ seeds: await seed.get(), outcomes });
    }),
    strict,
  });
  const ensure = new Late(async () => {
    const [{ EnsureCommand }, { EnsureBodies }] = await Promise.all([
      import("../git/ensure/ensure-command.ts"),
      import("../git/ensure/ensure-body.ts"),
    ]);
    const bodies = new EnsureBodies(idleMs);
    return new EnsureCommand({ upstream, access, cache, ensurer, bodies, metrics, clock, userAgent });
  });
  const cached = { access, cache, uploadPack, ensure, seed, strict, files, changes };
  return new GitRoutes({ ...routes, cached });
}

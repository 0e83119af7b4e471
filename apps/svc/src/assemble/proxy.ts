import type { Clock, Logger } from "@devplat/base";
import { ApiRoutes } from "../api-proxy/api-routes.ts";
import { ApiUpstream } from "../api-proxy/api-upstream.ts";
import { HostIds } from "../api-proxy/host-ids.ts";
import { LimitedRequests } from "../api-proxy/limited-requests.ts";
import type { IdentityParts } from "./identity.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import type { CachedRepositories } from "../administration/repositories/cached-repositories.ts";
import type { LiveConfig } from "../config/live-config.ts";
import { PROBES_PER_MINUTE } from "../access/probe-limit.ts";
import type { Accel } from "../http/accel/accel.ts";
import type { CacheParts } from "./cache-parts.ts";
import type { ChangeWatcher } from "../coordination/change-watcher.ts";
import { assembleGit } from "./git.ts";
import { BODY_IDLE_MS } from "../git/body/body-reader.ts";
import type { GitRoutes } from "../git/routes.ts";
import type { OwnAddress } from "../own-address.ts";
import type { ScopeAuthorizers } from "../scopes/scope-authorizers.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { ForeignCredentialPolicy } from "../tokens/foreign-credential-policy.ts";
import { TokenCheck } from "../tokens/token-check.ts";
import type { TokenLookup } from "../tokens/token-lookup.ts";
import { SharedRate } from "../tokens/shared-rate.ts";
import type { OneTimeStore } from "../storage/store.ts";
import { TokenRate } from "../tokens/token-rate.ts";
import type { TokenUses } from "../tokens/token-uses.ts";
import type { UpstreamConnections } from "../upstream/upstream-connections.ts";

export interface ProxyAssemblyOptions {
  readonly live: LiveConfig;
  readonly identity: IdentityParts;
  readonly repositories: CachedRepositories;
  readonly cache: CacheParts;
  readonly changes: ChangeWatcher;
  readonly accel: Accel | undefined;
  readonly lookup: TokenLookup;
  readonly uses: TokenUses;
  /** Where instances count the requests of tokens together. */
  readonly counts: OneTimeStore;
  readonly authorizers: ScopeAuthorizers;
  readonly connections: UpstreamConnections;
  readonly address: OwnAddress;
  readonly audit: AuditTrail;
  /** For requests of our own. */
  readonly userAgent: string;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Parts that answer requests for the code host. */
export interface ProxyParts {
  readonly git: GitRoutes;
  readonly api: ApiRoutes;
  /** The caller closes it after the last request. */
  readonly apiUpstream: ApiUpstream;
}

/** Assembles git and the API behind the check of credentials. */
export function assembleProxy(options: ProxyAssemblyOptions): ProxyParts {
  const { live, identity, repositories, cache, lookup, uses, authorizers, connections, address } = options;
  const { audit, userAgent, metrics, clock, logger } = options;
  const { codeHost } = identity;
  const config = live.current;
  const rate = new TokenRate(
    config.tokens.requests_per_minute,
    clock,
    new SharedRate(options.counts, clock, logger),
  );
  live.subscribe((next) => rate.setPerMinute(next.tokens.requests_per_minute));
  const tokenCheck = new TokenCheck({
    lookup,
    uses,
    rate,
    accounts: identity.accounts,
    allowed: identity.allowed,
    installations: identity.installations,
    codeHost,
    address,
    clock,
    logger,
  });
  const credentials = new ForeignCredentialPolicy(
    tokenCheck,
    {
      blockTokenPrefixes: config.border.block_token_prefixes,
      blockAnonymousGit: config.border.block_anonymous_git,
      allowedOwners: config.border.allowed_owners,
    },
    () => live.current.tokens.push_needs_workflows,
  );
  const apiUpstream = new ApiUpstream({ connections, metrics });
  const ids = new HostIds({ upstream: apiUpstream, host: codeHost, userAgent, clock });
  const api = new ApiRoutes({
    codeHost,
    credentials,
    limited: new LimitedRequests(authorizers, ids),
    upstream: apiUpstream,
    address,
    audit,
    logger,
  });
  const git = assembleGit({
    hostUrl: config.host.url,
    connections,
    credentials,
    policies: repositories,
    cache: config.cache.enabled ? cache : undefined,
    changes: options.changes,
    grantSeconds: config.cache.grant_seconds,
    accel: options.accel,
    strictLsRefs: config.cache.strict_lsrefs,
    gitCommandBytes: config.limits.git_command_bytes,
    bodyIdleMs: BODY_IDLE_MS,
    probesPerMinute: PROBES_PER_MINUTE,
    userAgent,
    metrics,
    logger,
    clock,
  });
  return { git, api, apiUpstream };
}

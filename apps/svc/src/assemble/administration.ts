import type { IncomingMessage, ServerResponse } from "node:http";
import { type Clock, type Logger } from "@devplat/base";
import { Assets, addCommonAssets } from "@devplat/web-kit";
import { adminTokenOperations } from "../admin-api/admin-tokens.ts";
import { appOperations } from "../admin-api/apps.ts";
import { auditOperations } from "../admin-api/audit.ts";
import { cachedRepositoryOperations } from "../admin-api/cached-repos.ts";
import { testLoginOperation } from "../admin-api/login.ts";
import { sessionOperations } from "../admin-api/sessions.ts";
import { instanceOperations } from "../admin-api/instances.ts";
import { openApiOperation } from "../admin-api/openapi.ts";
import type { Operation } from "../admin-api/operation.ts";
import { scopeOperations } from "../admin-api/scopes.ts";
import { tokenOperations } from "../admin-api/tokens.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import type { CacheMaintenance } from "../cache/policy.ts";
import type { CachedRepositories } from "../administration/repositories/cached-repositories.ts";
import type { LiveConfig } from "../config/live-config.ts";
import type { IdentityParts } from "./identity.ts";
import { assembleLogins } from "./logins.ts";
import { Authenticator } from "../identity/login/authenticator.ts";
import { DerivedTokens } from "../administration/tokens/derived-tokens.ts";
import { SessionUseCases } from "../administration/sessions/sessions.ts";
import { TestLogin } from "../administration/sessions/test-login.ts";
import type { Overload } from "../cache/admission/overload.ts";
import type { Health } from "../health.ts";
import { addPageAssets } from "../admin-ui/common/layout.ts";
import { LiveDashboard } from "../admin-ui/dashboard/live-dashboard.ts";
import type { Activity } from "../telemetry/activity.ts";
import { managementListener } from "./management.ts";
import type { OwnAddress } from "../own-address.ts";
import { ScopeExplainer } from "../administration/tokens/explain.ts";
import { Readiness } from "../readiness.ts";
import type { ScopeAuthorizers } from "../scopes/scope-authorizers.ts";
import type { Store } from "../storage/store.ts";
import { AdminTokens } from "../administration/tokens/admin-tokens.ts";
import type { RepositoryProbe } from "../administration/repositories/repository-probe.ts";
import type { TokenLookup } from "../tokens/token-lookup.ts";
import { PushReceiver } from "../webhooks/push-receiver.ts";
import { Instances, type InstancesParts } from "../administration/instances/instances.ts";
import { AuditLog } from "../administration/read-audit-log.ts";
import { Explanations } from "../administration/tokens/explanations.ts";
import { Repositories } from "../administration/repositories/repositories.ts";
import { Tokens } from "../administration/tokens/tokens.ts";
import { Users } from "../administration/sessions/users.ts";

export interface AdministrationParts {
  readonly live: LiveConfig;
  readonly store: Store;
  readonly repositories: CachedRepositories;
  readonly maintenance: CacheMaintenance;
  readonly audit: AuditTrail;
  readonly lookup: TokenLookup;
  readonly authorizers: ScopeAuthorizers;
  readonly identity: IdentityParts;
  readonly probe: RepositoryProbe;
  readonly address: OwnAddress;
  readonly renderMetrics: () => Promise<{ readonly contentType: string; readonly body: string }>;
  readonly registry: InstancesParts["registry"];
  /** Whether the service gets no new requests, because it ends. */
  readonly isStopping: () => boolean;
  readonly activity: Activity;
  readonly health: Health;
  readonly overload: Pick<Overload, "isTurningAway">;
  readonly version: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Everything that is not git. */
export interface Administration {
  readonly operations: readonly Operation[];
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void;
  readonly dashboard: LiveDashboard;
}

/** Assembles the use cases of the administration and their two faces, on its own for tests. */
export function assembleAdministration(parts: AdministrationParts): Administration {
  const { live, store, maintenance, audit, lookup, address, clock, logger, version } = parts;
  const config = live.current;
  const { identity } = parts;
  const { accounts } = identity;
  const logins = assembleLogins(parts);
  const authenticator = new Authenticator(identity.sessions, address, identity.allowed);
  const testLogin = config.dev.mode
    ? new TestLogin({
        store,
        sessions: identity.sessions,
        accounts,
        audit,
        clock,
        defaultHostToken: config.dev.host_token,
      })
    : undefined;
  const tokens = new Tokens({
    store,
    knowsApps: identity.codeHost.apps !== undefined,
    lookup,
    probe: parts.probe,
    accounts,
    installations: identity.installations,
    audit,
    clock,
    get maxDurationMs() {
      return live.current.tokens.max_duration;
    },
    get allowUnrestricted() {
      return live.current.tokens.allow_unrestricted;
    },
    get allowNever() {
      return live.current.tokens.allow_never;
    },
  });
  const derived = new DerivedTokens({ sessions: store.sessions, tokens, audit, clock });
  const sessions = new SessionUseCases({
    sessions: identity.sessions,
    store: store.sessions,
    derived,
    accounts,
    audit,
  });
  const adminTokens = new AdminTokens({
    sessions: store.sessions,
    derived,
    audit,
    clock,
    get maxDurationMs() {
      return live.current.tokens.admin_max_duration;
    },
  });
  const list = parts.repositories;
  const instances = new Instances({ registry: parts.registry, clock });
  const repositories = new Repositories({
    list,
    maintenance,
    instances,
    accounts,
    probe: parts.probe,
    audit,
    logger,
  });
  const auditLog = new AuditLog(store.audit);
  const explanations = new Explanations({
    explainer: new ScopeExplainer(
      parts.authorizers,
      identity.codeHost,
      () => live.current.tokens.push_needs_workflows,
    ),
    lookup,
    tokens,
  });
  const assets = new Assets();
  addCommonAssets(assets);
  addPageAssets(assets);
  const described: Operation[] = [
    ...(testLogin === undefined ? [] : [testLoginOperation(testLogin)]),
    ...sessionOperations(sessions, address),
    ...cachedRepositoryOperations(repositories, address),
    ...tokenOperations(tokens, sessions, address),
    ...adminTokenOperations(adminTokens, address),
    ...auditOperations(auditLog, address),
    ...scopeOperations(explanations),
    ...instanceOperations(instances),
    ...appOperations(logins.apps, identity.codeHost, address),
  ];
  const dashboard = new LiveDashboard({
    instances,
    repositories: list,
    maintenance,
    activity: parts.activity,
    health: parts.health,
    clock,
    logger,
  });
  const operations = [...described, openApiOperation(described, version)];
  const listener = managementListener({
    operations,
    assets,
    renderMetrics: parts.renderMetrics,
    metricsPublic: config.metrics.public,
    readiness: new Readiness(parts),
    ownHostsOnly: config.dev.mode && !config.dev.mode_unsafe,
    audit,
    logger,
    pushReceiver: new PushReceiver({
      store,
      secret: config.host.webhook_secret,
      maintenance,
      limits: logins.limits,
      audit,
      clock,
    }),
    ui: {
      ...identity,
      ...logins,
      assets,
      version,
      live,
      dashboard,
      explanations,
      operations,
      hostUrl: identity.codeHost.url,
      hostName: new URL(identity.codeHost.url).host,
      auditLog,
      repositories,
      cacheEnabled: config.cache.enabled,
      tokens,
      sessions,
      users: new Users(store.users, identity.sessions),
      authenticator,
      audit,
      testLogin,
      address,
      clock,
      logger,
    },
  });
  return { operations, listener, dashboard };
}

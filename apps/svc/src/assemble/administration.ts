import type { IncomingMessage, ServerResponse } from "node:http";
import { type Clock, type Logger } from "@devplat/base";
import { Assets, addCommonAssets } from "@devplat/web-kit";
import { adminTokenOperations } from "../admin-api/admin-tokens.ts";
import { appOperations } from "../admin-api/apps.ts";
import { auditOperations } from "../admin-api/audit.ts";
import { cachedRepositoryOperations } from "../admin-api/cached-repos.ts";
import { logoutOperation, testLoginOperation } from "../admin-api/login.ts";
import { sessionOperations } from "../admin-api/sessions.ts";
import { openApiOperation } from "../admin-api/openapi.ts";
import type { Operation } from "../admin-api/operation.ts";
import { scopeOperations } from "../admin-api/scopes.ts";
import { tokenOperations } from "../admin-api/tokens.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import type { CacheMaintenance } from "../cache/policy.ts";
import type { CachedRepositories } from "../administration/cached-repositories.ts";
import type { LiveConfig } from "../config/live-config.ts";
import type { IdentityParts } from "./identity.ts";
import { Authenticator } from "../identity/login/authenticator.ts";
import { MadeWith } from "../administration/made-with.ts";
import { SessionEnd } from "../administration/session-end.ts";
import { TestLogin } from "../identity/login/test-login.ts";
import type { Health } from "../health.ts";
import { addPageAssets } from "../admin-ui/layout.ts";
import { LiveDashboard } from "../admin-ui/live-dashboard.ts";
import type { Activity } from "../telemetry/activity.ts";
import { managementListener } from "./management.ts";
import type { OwnAddress } from "../own-address.ts";
import { ScopeExplainer } from "../administration/explain.ts";
import type { ScopeJudges } from "../scopes/scope-judges.ts";
import type { Store } from "../storage/store.ts";
import { AdminTokens } from "../administration/admin-tokens.ts";
import type { RepositoryProbe } from "../administration/repository-probe.ts";
import type { TokenLookup } from "../tokens/token-lookup.ts";
import { PushReceiver } from "../webhooks/push-receiver.ts";
import { TokenMint } from "../administration/token-mint.ts";

export interface AdministrationParts {
  readonly live: LiveConfig;
  readonly store: Store;
  readonly repositories: CachedRepositories;
  readonly maintenance: CacheMaintenance;
  readonly audit: AuditTrail;
  readonly lookup: TokenLookup;
  readonly judges: ScopeJudges;
  readonly identity: IdentityParts;
  readonly probe: RepositoryProbe;
  readonly address: OwnAddress;
  readonly renderMetrics: () => Promise<{ readonly contentType: string; readonly body: string }>;
  /** Whether the service gets no new requests, because it ends. */
  readonly isStopping: () => boolean;
  readonly activity: Activity;
  readonly health: Health;
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

/** The assembly of the management surface. Part of assemble.ts, on its own for tests. */
export function assembleAdministration(parts: AdministrationParts): Administration {
  const { live, store, repositories, maintenance, audit, lookup, address, clock, logger, version } = parts;
  const config = live.current;
  const { identity } = parts;
  const { sessions, accounts } = identity;
  const authenticator = new Authenticator(sessions, address, identity.allowed);
  const testLogin = config.dev.mode
    ? new TestLogin({ store, sessions, accounts, audit, clock, defaultHostToken: config.dev.host_token })
    : undefined;
  const mint = new TokenMint({
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
  const madeWith = new MadeWith({ sessions: store.sessions, mint, audit, clock });
  const sessionEnd = new SessionEnd({ sessions, store: store.sessions, madeWith, audit });
  const adminTokens = new AdminTokens({
    sessions: store.sessions,
    madeWith,
    audit,
    clock,
    get maxDurationMs() {
      return live.current.tokens.admin_max_duration;
    },
  });
  const assets = new Assets();
  addCommonAssets(assets);
  addPageAssets(assets);
  const explainer = new ScopeExplainer(
    parts.judges,
    identity.codeHost,
    () => live.current.tokens.push_needs_workflows,
  );
  const described: Operation[] = [
    ...(testLogin === undefined ? [] : [testLoginOperation(testLogin)]),
    logoutOperation(sessions, audit),
    ...sessionOperations({ sessions, sessionEnd, madeWith, address, accounts, audit }),
    ...cachedRepositoryOperations({
      repositories,
      maintenance,
      accounts,
      probe: parts.probe,
      audit,
      address,
      logger,
    }),
    ...tokenOperations(mint, sessionEnd, address),
    ...adminTokenOperations(adminTokens, address),
    ...auditOperations(store.audit, address),
    ...scopeOperations(explainer, lookup),
    ...appOperations(identity.apps, identity.codeHost, address),
  ];
  const dashboard = new LiveDashboard({
    repositories,
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
    notReady: async () => {
      if (parts.isStopping()) return "the service is stopping";
      return (await parts.health.databaseAnswers()) ? undefined : "the database does not answer";
    },
    ownHostsOnly: config.dev.mode && !config.dev.mode_unsafe,
    audit,
    logger,
    pushReceiver: new PushReceiver({
      store,
      secret: config.host.webhook_secret,
      maintenance,
      limits: identity.limits,
      audit,
      clock,
    }),
    ui: {
      assets,
      version,
      live,
      dashboard,
      explainer,
      operations,
      hostUrl: identity.codeHost.url,
      auditStore: store.audit,
      repositories,
      maintenance,
      audit,
      cacheEnabled: config.cache.enabled,
      mint,
      sessionEnd,
      madeWith,
      authenticator,
      ...identity,
      hostName: new URL(identity.codeHost.url).host,
      users: store.users,
      testLogin,
      address,
      clock,
      logger,
    },
  });
  return { operations, listener, dashboard };
}

import type { Clock, Logger } from "@devplat/base";
import type { HttpClient } from "@devplat/http-client";
import { Accounts } from "../identity/accounts/accounts.ts";
import { HostAppsClient } from "../identity/apps/host-apps.ts";
import { InstallationTokens } from "../identity/apps/installation-tokens.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import { codeHostFor } from "../code-host/code-host-for.ts";
import type { CodeHost } from "../code-host/code-host.ts";
import { HostClient } from "../code-host/host-client.ts";
import type { HostOauth } from "../code-host/host-oauth.ts";
import type { Config } from "../config/schema.ts";
import { AllowedUsers, type AllowedLogins } from "../identity/login/allowed-users.ts";
import { Sessions } from "../identity/login/sessions.ts";
import type { Store } from "../storage/store.ts";

export interface IdentityOptions {
  readonly config: Pick<Config, "admins" | "dev" | "host" | "login">;
  readonly store: Store;
  readonly audit: AuditTrail;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Connections to the code host; undefined: plain ones. */
  readonly http?: HttpClient;
}

/** Who is who: at the code host, and here. */
export interface IdentityParts {
  readonly codeHost: CodeHost;
  readonly accounts: Accounts;
  readonly sessions: Sessions;
  readonly allowed: AllowedUsers;
  /** Undefined: no OAuth client is configured. */
  readonly oauth: HostOauth | undefined;
  readonly hostApps: HostAppsClient;
  readonly installations: InstallationTokens;
}

/** Assembles accounts, sessions and app credentials, which requests for repositories need, too. */
export async function assembleIdentity(options: IdentityOptions): Promise<IdentityParts> {
  const { config, store, audit, clock, logger } = options;
  const { client_id: clientId, client_secret: clientSecret } = config.host;
  const codeHost = codeHostFor(config.host);
  const client = new HostClient(options.http);
  let oauth: HostOauth | undefined;
  if (clientId !== undefined && clientSecret !== undefined) {
    const { HostOauth } = await import("../code-host/host-oauth.ts");
    oauth = new HostOauth({ host: codeHost, client, clientId, clientSecret, clock });
  }
  const accounts = new Accounts({ store, oauth, clock, logger });
  const sessions = new Sessions(store, clock, { admins: config.admins, recordedRoles: config.dev.mode });
  const allowed = new AllowedUsers({
    oauth,
    accounts,
    isAdmin: (login) => sessions.isAdmin(login),
    allowed: allowedLogins(config),
    // Development mode lets in anybody under any name.
    recheckMs: config.dev.mode ? undefined : config.login.recheck_minutes * 60_000,
    clock,
    logger,
  });
  const hostApps = new HostAppsClient(codeHost, client, clock);
  const installations = new InstallationTokens({ store, hostApps, codeHost, audit, clock, logger });
  return { codeHost, accounts, sessions, allowed, oauth, hostApps, installations };
}

/** The lists of the configuration. */
export function allowedLogins({ login }: Pick<Config, "login">): AllowedLogins {
  return { users: login.allowed_users, organizations: login.allowed_organizations };
}

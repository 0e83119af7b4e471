import type { Clock, Logger } from "@devplat/base";
import type { IdentityParts } from "./identity.ts";
import { Apps } from "../administration/apps/apps.ts";
import { ManifestFlow } from "../administration/apps/manifest-flow.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import { DeviceFlow } from "../identity/login/device-flow.ts";
import { LoginLimits } from "../identity/login/login-limits.ts";
import { WebLogin } from "../identity/login/web-login.ts";
import type { OwnAddress } from "../own-address.ts";
import type { Store } from "../storage/store.ts";

export interface LoginsOptions {
  readonly identity: IdentityParts;
  readonly store: Store;
  readonly audit: AuditTrail;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How people sign in, and how apps are registered: parts of the administration alone. */
export interface Logins {
  /** Undefined: no OAuth client is configured. */
  readonly webLogin: WebLogin | undefined;
  readonly deviceFlow: DeviceFlow;
  readonly limits: LoginLimits;
  readonly apps: Apps;
  readonly manifestFlow: ManifestFlow;
}

/** Assembles the apps of this service at the code host. */
export function assembleApps({ identity, store, audit, clock, logger }: LoginsOptions): Apps {
  const { codeHost, hostApps, installations } = identity;
  return new Apps({
    store: store.apps,
    hostApps: codeHost.apps === undefined ? undefined : hostApps,
    audit,
    clock,
    logger,
    onChange: async (id) => installations.forgetApp(id),
  });
}

/** Assembles logins and the registration of apps. */
export function assembleLogins(options: LoginsOptions & { readonly address: OwnAddress }): Logins {
  const { identity, store, address, audit, clock } = options;
  const { codeHost, accounts, sessions, allowed, oauth, hostApps } = identity;
  const apps = assembleApps(options);
  return {
    webLogin: oauth && new WebLogin({ store, oauth, sessions, accounts, address, allowed, audit, clock }),
    deviceFlow: new DeviceFlow({ store, sessions, audit, clock }),
    limits: new LoginLimits(clock),
    apps,
    manifestFlow: new ManifestFlow({ store: store.oneTime, hostApps, codeHost, apps, address, clock }),
  };
}

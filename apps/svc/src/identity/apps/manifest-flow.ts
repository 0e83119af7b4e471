import type { Identity } from "../principal.ts";
import type { Clock } from "@devplat/base";
import type { CodeHost } from "../../code-host/code-host.ts";
import { SvcError } from "../../errors.ts";
import type { Client } from "../client.ts";
import { digest, randomText } from "../login/random.ts";
import type { OwnAddress } from "../../own-address.ts";
import type { AppRecord, Store } from "../../storage/store.ts";
import { HOOK_PATH } from "./hook-path.ts";
import type { AppRegistry } from "./app-registry.ts";
import type { HostAppsClient } from "./host-apps.ts";

export const MANIFEST_CALLBACK_PATH = "/admin/apps/manifest/callback";
/** Milliseconds from the form to the callback; the code host's code is good for an hour. */
const LIFETIME_MS = 60 * 60_000;
const KIND = "manifest_state";

/** Rights that agent tokens commonly need; the owner of the app can change them at the code host. */
const PERMISSIONS = {
  actions: "write",
  checks: "write",
  contents: "write",
  issues: "write",
  metadata: "read",
  pull_requests: "write",
  statuses: "write",
} as const;

export interface ManifestFlowOptions {
  readonly store: Store["oneTime"];
  readonly hostApps: HostAppsClient;
  readonly codeHost: CodeHost;
  readonly registry: AppRegistry;
  readonly address: OwnAddress;
  readonly clock: Clock;
}

/** What the browser posts to the code host. */
export interface ManifestForm {
  readonly action: string;
  readonly manifest: string;
}

/**
 * Registers an app by the code host's manifest flow: a form that is filled in, one click there, and a code that comes
 * back for the app's key. The code is taken only with the state that was given to the same session.
 */
export class ManifestFlow {
  readonly #options: ManifestFlowOptions;

  constructor(options: ManifestFlowOptions) {
    this.#options = options;
  }

  /** @param owner an organization that is to own the app; undefined: the admin's own account */
  async begin(caller: Identity, name: string, owner: string | undefined): Promise<ManifestForm> {
    const { store, codeHost, address, clock } = this.#options;
    if (codeHost.apps === undefined) {
      throw new SvcError("no_app", "This code host knows no apps (host.kind)");
    }
    const state = randomText();
    const now = clock.now();
    await store.put(
      { kind: KIND, key: digest(state), value: caller.sessionId, expiresAt: now + LIFETIME_MS },
      now,
    );
    const action = new URL(codeHost.apps.registrationUrl(owner));
    action.searchParams.set("state", state);
    const manifest = {
      name,
      url: address.baseUrl,
      redirect_url: address.baseUrl + MANIFEST_CALLBACK_PATH,
      // The code host refuses addresses that it cannot reach; then the owner sets it later.
      ...(address.isHttps ? { hook_attributes: { url: address.baseUrl + HOOK_PATH, active: true } } : {}),
      public: false,
      default_permissions: PERMISSIONS,
      ...(address.isHttps ? { default_events: ["push"] } : {}),
    };
    return { action: action.href, manifest: JSON.stringify(manifest) };
  }

  /** @throws SvcError `app_refused` (not begun in this session, used, too old), `host_unreachable`, `already_exists` */
  async finish(
    callback: { readonly code: string | undefined; readonly state: string | undefined },
    caller: Identity,
    client: Client,
  ): Promise<AppRecord> {
    const { store, hostApps, registry, clock } = this.#options;
    const state = await store.take(KIND, digest(callback.state ?? ""), clock.now());
    if (state?.value !== caller.sessionId || callback.code === undefined || callback.code === "") {
      throw new SvcError("app_refused", "This registration was not begun in your session, or took too long", {
        hint: "Begin it anew.",
      });
    }
    return registry.adopt(await hostApps.convertManifest(callback.code), caller, client);
  }
}

/** Addresses that pages may post the manifest to, beside our own. */
export function registrationOrigin(codeHost: CodeHost): string {
  return new URL(codeHost.url).origin;
}

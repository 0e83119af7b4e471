import type { Actor } from "../../identity/principal.ts";
import type { Clock } from "@devplat/base";
import type { CodeHost } from "../../code-host/code-host.ts";
import { SvcError } from "../../errors.ts";
import { readManifestRequest } from "./app-input.ts";
import { requireAdmin } from "../permission.ts";
import { digest, randomText } from "../../identity/login/random.ts";
import type { OwnAddress } from "../../own-address.ts";
import type { AppRecord, Store } from "../../storage/store.ts";
import { HOOK_PATH } from "../../identity/apps/hook-path.ts";
import type { Apps } from "./apps.ts";
import type { HostAppsClient } from "../../identity/apps/host-apps.ts";

export const MANIFEST_CALLBACK_PATH = "/admin/apps/manifest/callback";
/** Milliseconds from the form to the callback. The code host's code is valid for an hour. */
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

export interface ManifestFlowParts {
  readonly store: Store["oneTime"];
  readonly hostApps: HostAppsClient;
  readonly codeHost: CodeHost;
  readonly apps: Apps;
  readonly address: OwnAddress;
  readonly clock: Clock;
}

/** The form that the browser posts to the code host. */
export interface ManifestForm {
  readonly action: string;
  readonly manifest: string;
}

/**
 * Registers an app by the code host's manifest flow. The user fills in a form here and confirms it at the code host, which
 * returns a code for the app's key. The code is accepted only with the state of the same session.
 */
export class ManifestFlow {
  readonly #parts: ManifestFlowParts;

  constructor(parts: ManifestFlowParts) {
    this.#parts = parts;
  }

  /** @param input name, and the organization that is to own the app; empty: the actor's account @throws FieldError */
  async begin(actor: Actor, input: unknown): Promise<ManifestForm> {
    requireAdmin(actor);
    const { name, owner } = readManifestRequest(input);
    const { store, codeHost, address, clock } = this.#parts;
    if (codeHost.apps === undefined) {
      throw new SvcError("no_app", "This code host knows no apps (host.kind)");
    }
    const state = randomText();
    const now = clock.now();
    await store.put(
      { kind: KIND, key: digest(state), value: actor.sessionId, expiresAt: now + LIFETIME_MS },
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
    actor: Actor,
    callback: { readonly code: string | undefined; readonly state: string | undefined },
  ): Promise<AppRecord> {
    requireAdmin(actor);
    const { store, hostApps, apps, clock } = this.#parts;
    const state = await store.take(KIND, digest(callback.state ?? ""), clock.now());
    if (state?.value !== actor.sessionId || callback.code === undefined || callback.code === "") {
      throw new SvcError("app_refused", "This registration was not begun in your session, or took too long", {
        hint: "Begin again.",
      });
    }
    return apps.adopt(actor, await hostApps.convertManifest(callback.code));
  }
}

/** The foreign origin that the page of the manifest may post to. */
export function registrationOrigin(codeHost: CodeHost): string {
  return new URL(codeHost.url).origin;
}

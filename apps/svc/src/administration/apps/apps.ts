import type { Actor } from "../../identity/principal.ts";
import { randomUUIDv7 } from "node:crypto";
import type { Clock, Logger, Secret } from "@devplat/base";
import { actionEvent } from "../../identity/audit-source.ts";
import type { AuditAction, AuditTrail } from "../../audit/audit-event.ts";
import { FieldError, SvcError } from "../../errors.ts";
import type { AppRecord, Store } from "../../storage/store.ts";
import { readAppChange, readNewApp } from "./app-input.ts";
import { requireAdmin } from "../permission.ts";
import { requireVersion, versionMismatch, type ExpectedVersions } from "../record-version.ts";
import { readAppKey } from "../../identity/apps/app-key.ts";
import type { ConvertedApp, HostApp, HostAppsClient, Installation } from "../../identity/apps/host-apps.ts";

export interface AppsParts {
  readonly store: Store["apps"];
  /** Undefined: the code host knows no apps. */
  readonly hostApps: HostAppsClient | undefined;
  readonly audit: AuditTrail;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with an app that was removed, or got another key. */
  readonly onChange: (appId: string) => Promise<void>;
}

/** An app with its description at the code host. */
export interface CheckedApp {
  readonly app: AppRecord;
  readonly host: HostApp;
  readonly installations: readonly Installation[];
}

/**
 * The registered apps of the code host. A key is tested before it is stored. Every method with an actor throws SvcError
 * `forbidden` if the actor is not an admin.
 */
export class Apps {
  readonly #parts: AppsParts;

  constructor(parts: AppsParts) {
    this.#parts = parts;
  }

  async list(actor: Actor): Promise<readonly AppRecord[]> {
    requireAdmin(actor);
    return this.#parts.store.list();
  }

  /** @throws SvcError `not_found` */
  async get(actor: Actor, id: string): Promise<AppRecord> {
    requireAdmin(actor);
    return this.#get(id);
  }

  async #get(id: string): Promise<AppRecord> {
    const record = await this.#parts.store.get(id);
    if (record === undefined) throw new SvcError("not_found", "No app has this id");
    return record;
  }

  /** @throws SvcError `invalid_fields`, `already_exists`, `host_unreachable`; ProblemError */
  async register(actor: Actor, input: unknown): Promise<AppRecord> {
    requireAdmin(actor);
    const given = readNewApp(input);
    const { slug, name, ownerLogin } = await this.#tried(given);
    return this.#insert(actor, { ...given, slug, name, ownerLogin, clientId: undefined, source: "api" });
  }

  /** Stores an app that the code host created from a manifest. @throws SvcError `already_exists` */
  async adopt(actor: Actor, made: ConvertedApp): Promise<AppRecord> {
    requireAdmin(actor);
    return this.#insert(actor, { ...made, isDefault: false, source: "manifest" });
  }

  /** @throws SvcError `not_found`, `version_mismatch`, `invalid_fields`, `host_unreachable`; ProblemError */
  async update(actor: Actor, id: string, input: unknown, expected?: ExpectedVersions): Promise<AppRecord> {
    requireAdmin(actor);
    const change = readAppChange(input);
    const { store, clock, onChange } = this.#parts;
    const old = await this.#get(id);
    requireVersion(old, expected);
    const privateKey = change.privateKey ?? old.privateKey;
    const host =
      change.privateKey === undefined ? undefined : await this.#tried({ appId: old.appId, privateKey });
    const next: AppRecord = {
      ...old,
      ...(host === undefined ? {} : { slug: host.slug, name: host.name, ownerLogin: host.ownerLogin }),
      privateKey,
      webhookSecret:
        change.webhookSecret === undefined ? old.webhookSecret : (change.webhookSecret ?? undefined),
      isDefault: change.isDefault ?? old.isDefault,
      updatedAt: clock.now(),
      version: old.version + 1,
    };
    if (!(await store.update(next))) throw versionMismatch();
    if (change.privateKey !== undefined) await onChange(id);
    this.#record(actor, "app.updated", next);
    return next;
  }

  /** @throws SvcError `not_found`, `version_mismatch` */
  async remove(actor: Actor, id: string, expected?: ExpectedVersions): Promise<void> {
    const record = await this.get(actor, id);
    requireVersion(record, expected);
    // The installation tokens are revoked first, because that needs the key of the app.
    await this.#parts.onChange(id);
    await this.#parts.store.delete(id);
    this.#record(actor, "app.deleted", record);
  }

  /** Reads an app from the code host and stores it. @throws SvcError `not_found`, `app_refused`, `host_unreachable` */
  async check(actor: Actor, id: string): Promise<CheckedApp> {
    requireAdmin(actor);
    const { store, clock } = this.#parts;
    const hostApps = this.#hostApps();
    const old = await this.#get(id);
    const host = await hostApps.describe(old);
    const installations = await hostApps.installations(old);
    const { slug, name, ownerLogin } = host;
    if (slug === old.slug && name === old.name && ownerLogin === old.ownerLogin) {
      return { app: old, host, installations };
    }
    const app = { ...old, slug, name, ownerLogin, updatedAt: clock.now(), version: old.version + 1 };
    return { app: (await store.update(app)) ? app : await this.#get(id), host, installations };
  }

  /**
   * Registers the app of the configuration, or updates its key. It sends no request to the code host, because the start of
   * the service must not depend on it.
   *
   * @throws SvcError `config_refused`: the key cannot be read
   */
  async seed(appId: string, privateKey: Secret): Promise<void> {
    const { store, clock, logger } = this.#parts;
    const key = readAppKey(privateKey);
    if (typeof key === "string") throw new SvcError("config_refused", `host.private_key ${key}`);
    const apps = await store.list();
    const now = clock.now();
    const old = apps.find((each) => each.appId === appId);
    if (old !== undefined) {
      if (old.privateKey.reveal() === privateKey.reveal()) return;
      await store.update({ ...old, privateKey, updatedAt: now, version: old.version + 1 });
      logger.info({ app_id: appId }, "took the app's key from the configuration");
      return;
    }
    const record: AppRecord = {
      id: randomUUIDv7(),
      appId,
      slug: `app-${appId}`,
      name: `App ${appId}`,
      ownerLogin: undefined,
      clientId: undefined,
      privateKey,
      webhookSecret: undefined,
      isDefault: !apps.some(({ isDefault }) => isDefault),
      source: "configuration",
      createdAt: now,
      updatedAt: now,
      version: 1,
    };
    await store.insert(record).catch((error: unknown) => {
      // Another instance that starts at the same moment was first.
      if (!(error instanceof SvcError) || error.code !== "already_exists") throw error;
    });
    logger.info({ app_id: appId }, "registered the app of the configuration");
  }

  async #insert(
    actor: Actor,
    given: Omit<AppRecord, "id" | "createdAt" | "updatedAt" | "version">,
  ): Promise<AppRecord> {
    const { store, clock } = this.#parts;
    const now = clock.now();
    // The first is the default: agent tokens and warming need one.
    const isDefault = given.isDefault || (await store.list()).length === 0;
    const record = { ...given, id: randomUUIDv7(), isDefault, createdAt: now, updatedAt: now, version: 1 };
    await store.insert(record);
    this.#record(actor, "app.created", record);
    return record;
  }

  /** The code host's description of the app with this id and key. */
  async #tried(app: { readonly appId: string; readonly privateKey: Secret }): Promise<HostApp> {
    const key = readAppKey(app.privateKey);
    if (typeof key === "string") throw new FieldError([{ pointer: "/private_key", message: key }]);
    try {
      return await this.#hostApps().describe(app);
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== "app_refused") throw error;
      const message = "is not the key of the app with this id, or this machine's clock is wrong";
      throw new FieldError([{ pointer: "/private_key", message }]);
    }
  }

  #hostApps(): HostAppsClient {
    const { hostApps } = this.#parts;
    if (hostApps === undefined) throw new SvcError("no_app", "This code host knows no apps (host.kind)");
    return hostApps;
  }

  #record(actor: Actor, action: AuditAction, app: AppRecord): void {
    const details = { app_id: app.appId, slug: app.slug, default: app.isDefault };
    this.#parts.audit.record(actionEvent(actor, action, app.id, details));
  }
}

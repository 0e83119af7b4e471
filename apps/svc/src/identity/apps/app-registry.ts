import type { Identity } from "../principal.ts";
import { randomUUIDv7 } from "node:crypto";
import type { Clock, Logger, Secret } from "@devplat/base";
import { managementSource } from "../audit-source.ts";
import type { AuditAction, AuditTrail } from "../../audit/audit-event.ts";
import { FieldError, SvcError } from "../../errors.ts";
import type { Client } from "../client.ts";
import type { AppRecord, Store } from "../../storage/store.ts";
import { readAppKey } from "./app-key.ts";
import type { ConvertedApp, HostApp, HostAppsClient, Installation } from "./host-apps.ts";

/** What is given to register an app. */
export interface NewApp {
  readonly appId: string;
  readonly privateKey: Secret;
  readonly webhookSecret: Secret | undefined;
  readonly isDefault: boolean;
}

export interface AppChange {
  readonly privateKey?: Secret | undefined;
  /** Null: there is none any more. */
  readonly webhookSecret?: Secret | null | undefined;
  /** Only true: another app is made the default to take it from this one. */
  readonly isDefault?: true | undefined;
}

export interface AppRegistryOptions {
  readonly store: Store["apps"];
  /** Undefined: the code host knows no apps. */
  readonly hostApps: HostAppsClient | undefined;
  readonly audit: AuditTrail;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Told of an app that was removed, or has another key. */
  readonly onChange: (appId: string) => Promise<void>;
}

/** The registered apps of the code host. A key is tried out before it is kept. */
export class AppRegistry {
  readonly #options: AppRegistryOptions;

  constructor(options: AppRegistryOptions) {
    this.#options = options;
  }

  async list(): Promise<readonly AppRecord[]> {
    return this.#options.store.list();
  }

  /** @throws SvcError `not_found` */
  async get(id: string): Promise<AppRecord> {
    const record = await this.#options.store.get(id);
    if (record === undefined) throw new SvcError("not_found", "No app has this id");
    return record;
  }

  /** @throws SvcError `invalid_fields`, `already_exists`, `host_unreachable` */
  async register(given: NewApp, caller: Identity, client: Client): Promise<AppRecord> {
    const host = await this.#tried(given);
    return this.#insert({ ...given, ...host, clientId: undefined, source: "api" }, caller, client);
  }

  /** Keeps an app that the code host made out of a manifest. @throws SvcError `already_exists` */
  async adopt(made: ConvertedApp, caller: Identity, client: Client): Promise<AppRecord> {
    return this.#insert({ ...made, isDefault: false, source: "manifest" }, caller, client);
  }

  /**
   * @param expected the version that the caller saw; undefined: whichever is there
   * @throws SvcError `not_found`, `version_mismatch`, `invalid_fields`, `host_unreachable`
   */
  async update(
    id: string,
    change: AppChange,
    expected: (record: AppRecord) => void,
    caller: Identity,
    client: Client,
  ): Promise<AppRecord> {
    const { store, clock, onChange } = this.#options;
    const old = await this.get(id);
    expected(old);
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
    if (!(await store.update(next))) {
      throw new SvcError("version_mismatch", "The app was changed meanwhile", { hint: "Read it again." });
    }
    if (change.privateKey !== undefined) await onChange(id);
    this.#record("app.updated", next, caller, client);
    return next;
  }

  /** @throws SvcError `not_found`, `version_mismatch` */
  async remove(
    id: string,
    expected: (record: AppRecord) => void,
    caller: Identity,
    client: Client,
  ): Promise<void> {
    const record = await this.get(id);
    expected(record);
    // First what it gave out: afterwards its key is gone.
    await this.#options.onChange(id);
    await this.#options.store.delete(id);
    this.#record("app.deleted", record, caller, client);
  }

  /** Asks the code host about an app, and keeps what it says. @throws SvcError `not_found`, `app_refused`, `host_unreachable` */
  async check(
    id: string,
  ): Promise<{ app: AppRecord; host: HostApp; installations: readonly Installation[] }> {
    const { store, clock } = this.#options;
    const hostApps = this.#hostApps();
    const old = await this.get(id);
    const host = await hostApps.describe(old);
    const installations = await hostApps.installations(old);
    const { slug, name, ownerLogin } = host;
    if (slug === old.slug && name === old.name && ownerLogin === old.ownerLogin) {
      return { app: old, host, installations };
    }
    const app = { ...old, slug, name, ownerLogin, updatedAt: clock.now(), version: old.version + 1 };
    return { app: (await store.update(app)) ? app : await this.get(id), host, installations };
  }

  /**
   * Registers the app of the configuration, or brings its key up to date. The code host is not asked: the start must not
   * hang on it.
   *
   * @throws SvcError `config_refused`: the key is none
   */
  async seed(appId: string, privateKey: Secret): Promise<void> {
    const { store, clock, logger } = this.#options;
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
    given: Omit<AppRecord, "id" | "createdAt" | "updatedAt" | "version">,
    caller: Identity,
    client: Client,
  ): Promise<AppRecord> {
    const { store, clock } = this.#options;
    const now = clock.now();
    // The first is the default: agent tokens and warming need one.
    const isDefault = given.isDefault || (await store.list()).length === 0;
    const record = { ...given, id: randomUUIDv7(), isDefault, createdAt: now, updatedAt: now, version: 1 };
    await store.insert(record);
    this.#record("app.created", record, caller, client);
    return record;
  }

  /** What the code host says to id and key. */
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
    const { hostApps } = this.#options;
    if (hostApps === undefined) throw new SvcError("no_app", "This code host knows no apps (host.kind)");
    return hostApps;
  }

  #record(action: AuditAction, app: AppRecord, caller: Identity, client: Client): void {
    this.#options.audit.record({
      action,
      outcome: "allowed",
      target: app.id,
      ...managementSource(caller, client),
      details: { app_id: app.appId, slug: app.slug, default: app.isDefault },
    });
  }
}

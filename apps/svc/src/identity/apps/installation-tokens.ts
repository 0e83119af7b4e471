import { Secret, type Clock, type Logger } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import type { AuditTrail } from "../../audit/audit-event.ts";
import type { CodeHost } from "../../code-host/code-host.ts";
import { SvcError } from "../../errors.ts";
import { digest } from "../login/random.ts";
import type { AppRecord, Level, Store, TokenRecord } from "../../storage/store.ts";
import { EVERYTHING } from "../../scopes/scopes.ts";
import type { HostAppsClient, Installation } from "./host-apps.ts";
import type { InstallationCredentials, InstallationOutcome } from "./installation-credentials.ts";
import { missingPermissions, permissionsFor } from "./permissions.ts";

/** Milliseconds before its expiry when an installation token is no longer used (spec/svc.md section 5). */
const UNUSED_AHEAD_MS = 5 * 60_000;
/** Milliseconds that a refusal is remembered, so that a loop of refused requests does not reach the code host. */
const REMEMBER_NO_MS = 30_000;
/** Agent tokens and warmed repositories remembered here. */
const MAX_REMEMBERED = 10_000;
/** Milliseconds that a record of an app is used before it is read again. */
const REREAD_APP_MS = 1000;
const KIND = "installation_token";

interface Issued {
  readonly appId: string;
  readonly outcome: InstallationOutcome;
  /** Time when it is requested again. */
  readonly until: number;
}

export interface InstallationTokensParts {
  readonly store: Pick<Store, "apps" | "oneTime" | "tokens">;
  readonly hostApps: HostAppsClient;
  readonly codeHost: CodeHost;
  readonly audit: AuditTrail;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Installation tokens for agent tokens and for warming. Each is stored encrypted, so that all instances use the same one,
 * and the instance that revokes the agent token can end it at the code host.
 */
export class InstallationTokens implements InstallationCredentials {
  readonly #parts: InstallationTokensParts;
  /** By purpose. Entries do not expire, because an unused token may still have to be revoked. */
  readonly #issued = new BoundedMap<string, Issued>({ max: MAX_REMEMBERED });
  readonly #asking = new Map<string, Promise<InstallationOutcome>>();
  readonly #apps = new Map<string, { readonly app: AppRecord | undefined; readonly readAt: number }>();

  constructor(parts: InstallationTokensParts) {
    this.#parts = parts;
  }

  async forToken(record: TokenRecord): Promise<InstallationOutcome> {
    const app = record.appId === undefined ? undefined : await this.#app(record.appId);
    if (app === undefined) {
      return { kind: "refused", message: "The app behind this agent token is not registered any more" };
    }
    return this.#remembered(`token/${record.id}`, app, async () => this.#issueFor(record, app));
  }

  async forRepository(owner: string, name: string, level: Level): Promise<Secret | undefined> {
    const app = await this.#default();
    if (app === undefined) return undefined;
    const key = `repository/${level}/${owner}/${name}`.toLowerCase();
    const outcome = await this.#remembered(key, app, async () => {
      const { hostApps } = this.#parts;
      const installation = await hostApps.onRepository(app, owner, name);
      if (installation === undefined)
        return { kind: "refused", message: `${app.slug} is not installed there` };
      const narrowing = { repositories: [name], permissions: { contents: level, metadata: "read" } };
      const issued = await hostApps.issue(app, installation.id, narrowing);
      return issued.kind === "token" ? issued : { kind: "refused", message: `status ${issued.status}` };
    });
    return outcome.kind === "token" ? outcome.token : undefined;
  }

  async revokeFor(tokenId: string): Promise<void> {
    const { store, clock } = this.#parts;
    const key = `token/${tokenId}`;
    this.#issued.delete(key);
    const kept = await store.oneTime.take(KIND, digest(key), clock.now());
    if (kept === undefined) return;
    const { token } = JSON.parse(kept.value) as { token: string };
    await this.#revoke(new Secret(token), tokenId);
  }

  /** Forgets the tokens of an app that was removed, or got another key. */
  async forgetApp(appId: string): Promise<void> {
    this.#apps.delete(appId);
    for (const [key, issued] of this.#issued.entries()) {
      if (issued.appId !== appId) continue;
      if (key.startsWith("token/")) await this.revokeFor(key.slice("token/".length));
      this.#issued.delete(key);
    }
  }

  async #app(id: string): Promise<AppRecord | undefined> {
    const now = this.#parts.clock.monotonic();
    const known = this.#apps.get(id);
    if (known !== undefined && now - known.readAt < REREAD_APP_MS) return known.app;
    const app = await this.#parts.store.apps.get(id);
    this.#apps.set(id, { app, readAt: now });
    return app;
  }

  async #default(): Promise<AppRecord | undefined> {
    const apps = await this.#parts.store.apps.list();
    return apps.find(({ isDefault }) => isDefault);
  }

  /** The remembered outcome, the one of a running request, or a new one. Errors of the code host do not reject it. */
  async #remembered(
    key: string,
    app: AppRecord,
    ask: () => Promise<InstallationOutcome>,
  ): Promise<InstallationOutcome> {
    const { clock } = this.#parts;
    const known = this.#issued.peek(key);
    if (known !== undefined && known.appId === app.id && clock.now() < known.until) return known.outcome;
    const running = this.#asking.get(key);
    if (running !== undefined) return running;
    const asking = this.#ask(ask)
      .then((outcome) => {
        if (outcome.kind !== "unavailable") this.#remember(key, app.id, outcome);
        return outcome;
      })
      .finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }

  #remember(key: string, appId: string, outcome: InstallationOutcome): void {
    const now = this.#parts.clock.now();
    const until = outcome.kind === "token" ? outcome.expiresAt - UNUSED_AHEAD_MS : now + REMEMBER_NO_MS;
    this.#issued.set(key, { appId, outcome, until });
  }

  async #ask(ask: () => Promise<InstallationOutcome>): Promise<InstallationOutcome> {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      if (error.code === "app_refused") return { kind: "refused", message: sentence(error) };
      if (error.code === "host_unreachable") return { kind: "unavailable", message: error.message };
      throw error;
    }
  }

  async #issueFor(record: TokenRecord, app: AppRecord): Promise<InstallationOutcome> {
    const { store, hostApps, audit, clock } = this.#parts;
    const key = digest(`token/${record.id}`);
    const now = clock.now();
    // Another instance may have asked already.
    const kept = await store.oneTime.get(KIND, key, now);
    if (kept !== undefined) {
      const { token, expiresAt } = JSON.parse(kept.value) as { token: string; expiresAt: number };
      if (now < expiresAt - UNUSED_AHEAD_MS) return { kind: "token", token: new Secret(token), expiresAt };
      await store.oneTime.take(KIND, key, now);
    }
    const installation = await this.#installationFor(record, app);
    if (installation === undefined) return { kind: "refused", message: this.#notInstalled(record, app) };
    if (installation.suspended) {
      return {
        kind: "refused",
        message: `The installation of ${app.slug} on ${installation.account} is suspended`,
      };
    }
    const permissions = permissionsFor(record.scopes);
    const issued = await hostApps.issue(app, installation.id, {
      repositories: record.repositories.includes(EVERYTHING) ? undefined : record.repositories.map(nameOf),
      permissions,
    });
    if (issued.kind === "refused") {
      return {
        kind: "refused",
        message: this.#explain(issued.status, record, app, installation, permissions),
      };
    }
    const { token, expiresAt } = issued;
    const value = JSON.stringify({ token: token.reveal(), expiresAt });
    if (!(await store.oneTime.put({ kind: KIND, key, value, expiresAt }, now))) {
      // Another instance stored its token first. A revocation finds that token.
      await this.#revoke(token, record.id);
      return this.#issueFor(record, app);
    }
    audit.record({
      action: "installation_token.issued",
      outcome: "allowed",
      actor: { kind: "system" },
      target: record.id,
      details: { app_id: app.appId, installation: installation.id, account: installation.account },
    });
    // A concurrent revocation found nothing to revoke. Checked after the token is stored, so that one of the two sees the other.
    if (await this.#isOver(record, app)) {
      await this.revokeFor(record.id);
      return { kind: "refused", message: "The agent token was revoked, or its app removed" };
    }
    return { kind: "token", token, expiresAt };
  }

  /**
   * Whether the agent token was revoked, or its app removed, by the store and not the cache. A token that is not stored yet
   * is being created: then this is the test whether its app can give a credential.
   */
  async #isOver(record: TokenRecord, app: AppRecord): Promise<boolean> {
    const { store } = this.#parts;
    const [current, still] = await Promise.all([store.tokens.get(record.id), store.apps.get(app.id)]);
    return current?.revokedAt !== undefined || still === undefined;
  }

  async #installationFor(record: TokenRecord, app: AppRecord): Promise<Installation | undefined> {
    const { hostApps } = this.#parts;
    const asked = record.installation;
    if (asked !== undefined && /^\d+$/.test(asked)) return hostApps.installation(app, asked);
    if (asked !== undefined) return hostApps.onAccount(app, asked);
    const [owner = "", name = ""] = (record.repositories[0] ?? "").split("/");
    return hostApps.onRepository(app, owner, name);
  }

  #notInstalled(record: TokenRecord, app: AppRecord): string {
    const where = record.installation ?? record.repositories[0] ?? "this account";
    const url = this.#parts.codeHost.apps?.installUrl(app.slug) ?? "the code host";
    return `The app ${app.slug} is not installed on ${where}: install it at ${url}`;
  }

  /** The reason why the code host gives no token, with an instruction for the caller. */
  #explain(
    status: number,
    record: TokenRecord,
    app: AppRecord,
    installation: Installation,
    permissions: Readonly<Record<string, string>> | undefined,
  ): string {
    if (status !== 422) return this.#notInstalled(record, app);
    const missing = missingPermissions(permissions ?? {}, installation.permissions);
    if (missing.length > 0) {
      return (
        `The installation of ${app.slug} on ${installation.account} lacks ${missing.join(", ")}: ` +
        "grant it in the app's settings at the code host, and accept it for the installation"
      );
    }
    return (
      `The installation of ${app.slug} on ${installation.account} does not cover all of ` +
      `${record.repositories.join(", ")}: add them at ${this.#parts.codeHost.apps?.installUrl(app.slug) ?? "the code host"}`
    );
  }

  async #revoke(token: Secret, tokenId: string): Promise<void> {
    const { hostApps, audit, logger } = this.#parts;
    try {
      const ended = await hostApps.revoke(token);
      audit.record({
        action: "installation_token.revoked",
        outcome: ended ? "allowed" : "failed",
        actor: { kind: "system" },
        target: tokenId,
      });
    } catch (error) {
      // The agent token is void here in any case; at the code host this one ends within the hour.
      logger.warn({ err: error, token_id: tokenId }, "an installation token could not be revoked");
    }
  }
}

function nameOf(repository: string): string {
  return repository.split("/")[1] ?? "";
}

function sentence(error: SvcError): string {
  return [error.message, error.hint].filter((part) => part !== undefined).join(". ");
}

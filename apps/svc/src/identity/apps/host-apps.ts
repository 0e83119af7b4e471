import { Secret, type Clock } from "@devplat/base";
import { jsonMember, numberMember, stringMember } from "@devplat/base/json-member";
import type { CodeHost } from "../../code-host/code-host.ts";
import { unreachable, type HostClient } from "../../code-host/host-client.ts";
import { SvcError } from "../../errors.ts";
import { appJwt, readAppKey } from "./app-key.ts";
import type { Permissions } from "./permissions.ts";

/** An app's own credentials. */
export interface AppCredentials {
  /** The code host's id of the app. */
  readonly appId: string;
  readonly privateKey: Secret;
}

/** An app as the code host describes it. */
export interface HostApp {
  readonly slug: string;
  readonly name: string;
  readonly ownerLogin: string | undefined;
  readonly permissions: Permissions;
}

/** An app's presence on one account. */
export interface Installation {
  readonly id: string;
  readonly account: string;
  /** Whether it is for all repositories of the account, or for chosen ones. */
  readonly selection: "all" | "selected";
  readonly suspended: boolean;
  readonly permissions: Permissions;
}

/** The app that the code host created from a manifest. */
export interface ConvertedApp extends AppCredentials {
  readonly slug: string;
  readonly name: string;
  readonly ownerLogin: string | undefined;
  readonly clientId: string | undefined;
  readonly webhookSecret: Secret | undefined;
}

export type IssueOutcome =
  | { readonly kind: "token"; readonly token: Secret; readonly expiresAt: number }
  /** The code host does not give this token to this app: 404, 403, 422. */
  | { readonly kind: "refused"; readonly status: number };

/** Most installations of one page, and most pages that are read. */
const PAGE = 100;
const MAX_PAGES = 20;

/**
 * The app side of the code host's API. Every method throws SvcError `app_refused` when the code host does not take the
 * app's key, and `host_unreachable` when it gives no usable answer.
 */
export class HostAppsClient {
  readonly #host: CodeHost;
  readonly #client: HostClient;
  readonly #clock: Clock;

  constructor(host: CodeHost, client: HostClient, clock: Clock) {
    this.#host = host;
    this.#client = client;
    this.#clock = clock;
  }

  async describe(app: AppCredentials): Promise<HostApp> {
    const { status, body } = await this.#ask(app, "GET", "/app");
    const [slug, name] = [stringMember(body, "slug"), stringMember(body, "name")];
    if (status !== 200 || slug === undefined || name === undefined) throw this.#useless("/app", status);
    return { slug, name, ownerLogin: ownerOf(body), permissions: permissionsOf(body) };
  }

  async installations(app: AppCredentials): Promise<readonly Installation[]> {
    const found: Installation[] = [];
    for (let page = 1; page <= MAX_PAGES; page++) {
      const path = `/app/installations?per_page=${PAGE}&page=${page}`;
      const { status, body } = await this.#ask(app, "GET", path);
      if (status !== 200 || !Array.isArray(body)) throw this.#useless("/app/installations", status);
      found.push(...body.map(installationOf).filter((each) => each !== undefined));
      if (body.length < PAGE) break;
    }
    return found;
  }

  /** By its id; undefined: it is gone, or another app's. */
  async installation(app: AppCredentials, id: string): Promise<Installation | undefined> {
    return this.#one(app, `/app/installations/${encodeURIComponent(id)}`);
  }

  /** The one on an account (organization or user); undefined: the app is not installed there. */
  async onAccount(app: AppCredentials, login: string): Promise<Installation | undefined> {
    const name = encodeURIComponent(login);
    return (
      (await this.#one(app, `/orgs/${name}/installation`)) ??
      (await this.#one(app, `/users/${name}/installation`))
    );
  }

  /** The one that covers a repository; undefined: none does. */
  async onRepository(app: AppCredentials, owner: string, name: string): Promise<Installation | undefined> {
    return this.#one(app, `/repos/${encodeURIComponent(owner)}/${encodeURIComponent(name)}/installation`);
  }

  /** @param narrowing undefined members mean all that the installation has */
  async issue(
    app: AppCredentials,
    installation: string,
    narrowing: {
      /** Without owner. */
      readonly repositories: readonly string[] | undefined;
      readonly permissions: Permissions | undefined;
    },
  ): Promise<IssueOutcome> {
    const path = `/app/installations/${encodeURIComponent(installation)}/access_tokens`;
    const { status, body } = await this.#ask(app, "POST", path, narrowing);
    if ([403, 404, 422].includes(status)) return { kind: "refused", status };
    const token = stringMember(body, "token");
    const expiresAt = Date.parse(stringMember(body, "expires_at") ?? "");
    if (status !== 201 || token === undefined || Number.isNaN(expiresAt)) throw this.#useless(path, status);
    return { kind: "token", token: new Secret(token), expiresAt };
  }

  /** Revokes an installation token. @returns false if it was not valid */
  async revoke(token: Secret): Promise<boolean> {
    const { status } = await this.#client.ask("DELETE", `${this.#host.apiUrl}/installation/token`, {
      authorization: this.#host.apiAuthorization(token),
    });
    return status === 204;
  }

  /** Exchanges the code of the manifest flow for the app. @throws SvcError `app_refused`: the code is used or too old */
  async convertManifest(code: string): Promise<ConvertedApp> {
    const url = `${this.#host.apiUrl}/app-manifests/${encodeURIComponent(code)}/conversions`;
    const { status, body } = await this.#client.ask("POST", url);
    if (status === 404 || status === 422) {
      throw new SvcError(
        "app_refused",
        "The code host does not know this registration: it is used or too old",
      );
    }
    const [id, pem, slug] = [numberMember(body, "id"), stringMember(body, "pem"), stringMember(body, "slug")];
    if (status !== 201 || id === undefined || pem === undefined || slug === undefined) {
      throw unreachable(new URL(url), `status ${status}`);
    }
    const webhookSecret = stringMember(body, "webhook_secret");
    return {
      appId: String(id),
      privateKey: new Secret(pem),
      slug,
      name: stringMember(body, "name") ?? slug,
      ownerLogin: ownerOf(body),
      clientId: stringMember(body, "client_id"),
      webhookSecret: webhookSecret === undefined ? undefined : new Secret(webhookSecret),
    };
  }

  async #one(app: AppCredentials, path: string): Promise<Installation | undefined> {
    const { status, body } = await this.#ask(app, "GET", path);
    if (status === 404 || status === 403) return undefined;
    const found = status === 200 ? installationOf(body) : undefined;
    if (found === undefined) throw this.#useless(path, status);
    return found;
  }

  async #ask(
    app: AppCredentials,
    method: "GET" | "POST",
    path: string,
    json?: unknown,
  ): Promise<{ status: number; body: unknown }> {
    const key = readAppKey(app.privateKey);
    if (typeof key === "string") throw new SvcError("app_refused", `The app's private key ${key}`);
    const jwt = appJwt(app.appId, key, this.#clock.now());
    const response = await this.#client.ask(method, this.#host.apiUrl + path, {
      authorization: new Secret(`Bearer ${jwt.reveal()}`),
      ...(json === undefined ? {} : { json }),
    });
    if (response.status === 401) {
      throw new SvcError("app_refused", `The code host does not take the key of app ${app.appId}`, {
        hint: "Check the app's id and key, and this machine's clock.",
      });
    }
    return response;
  }

  #useless(path: string, status: number): SvcError {
    return unreachable(new URL(this.#host.apiUrl + path), `status ${status}`);
  }
}

function installationOf(body: unknown): Installation | undefined {
  const id = numberMember(body, "id");
  const account = stringMember(body, "account", "login");
  if (id === undefined || account === undefined) return undefined;
  return {
    id: String(id),
    account,
    selection: stringMember(body, "repository_selection") === "selected" ? "selected" : "all",
    suspended: typeof jsonMember(body, "suspended_at") === "string",
    permissions: permissionsOf(body),
  };
}

function ownerOf(body: unknown): string | undefined {
  return stringMember(body, "owner", "login") ?? stringMember(body, "owner", "slug");
}

function permissionsOf(body: unknown): Permissions {
  const found = jsonMember(body, "permissions");
  if (typeof found !== "object" || found === null) return {};
  return Object.fromEntries(
    Object.entries(found).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

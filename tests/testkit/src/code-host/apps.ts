import { createVerify, generateKeyPairSync, randomBytes } from "node:crypto";
import type { Access } from "./access.ts";
import { json, type SideAnswer, type SideRequest } from "./side.ts";

export type Permissions = Readonly<Record<string, "read" | "write" | "admin">>;

/** An app as its owner has it. */
export interface TestApp {
  readonly id: number;
  readonly slug: string;
  /** PEM, PKCS 1, as GitHub gives it. */
  readonly privateKey: string;
  readonly webhookSecret: string;
}

/** An installation token that was given out. */
export interface InstallationToken {
  readonly token: string;
  readonly installation: number;
  /** Names without owner; undefined: all of the installation's. */
  readonly repositories: readonly string[] | undefined;
  readonly permissions: Permissions;
}

/** The app side of the code host, for tests to look at and to steer. */
export interface CodeHostApps {
  addApp(slug: string, permissions?: Permissions): TestApp;
  /** Installs an app on an account; resolves with the installation's id. `repositories`: names without owner, default all. */
  install(app: TestApp, account: string, repositories?: readonly string[]): number;
  suspend(installation: number): void;
  uninstall(installation: number): void;
  /** The app's key stops working. */
  removeApp(app: TestApp): void;
  /** Every installation token that was given out, in order. */
  readonly issued: readonly InstallationToken[];
  /** Tokens that `DELETE /installation/token` ended. */
  readonly revoked: ReadonlySet<string>;
  /** Seconds that an installation token lives: an hour. */
  lifetime: number;
  /** Takes a manifest as the registration page does; the code is for `/app-manifests/{code}/conversions`. */
  registerManifest(manifest: unknown): string;
}

interface App extends TestApp {
  readonly name: string;
  readonly publicKey: string;
  readonly permissions: Permissions;
}

interface Installation {
  readonly id: number;
  readonly appId: number;
  readonly account: string;
  readonly repositories: readonly string[] | undefined;
  readonly suspended: boolean;
}

/** GitHub refuses JWTs that live longer, in seconds; it allows no clock that is ahead. */
const MAX_JWT_SECONDS = 600;
const DEFAULT_PERMISSIONS: Permissions = { contents: "write", metadata: "read", pull_requests: "write" };

/** Apps, installations and their tokens, with GitHub's refusals. */
export class AppSide implements CodeHostApps {
  readonly issued: InstallationToken[] = [];
  readonly revoked = new Set<string>();
  lifetime = 3600;
  readonly #access: Access;
  readonly #prefix: string;
  readonly #apps = new Map<number, App>();
  readonly #installations = new Map<number, Installation>();
  readonly #manifests = new Map<string, string>();
  #last = 1000;

  /** @param prefix path of the REST API */
  constructor(access: Access, prefix: string) {
    this.#access = access;
    this.#prefix = prefix;
  }

  addApp(slug: string, permissions = DEFAULT_PERMISSIONS): TestApp {
    const { privateKey, publicKey } = generateKeyPairSync("rsa", {
      modulusLength: 2048,
      privateKeyEncoding: { type: "pkcs1", format: "pem" },
      publicKeyEncoding: { type: "spki", format: "pem" },
    });
    const id = ++this.#last;
    const webhookSecret = `planted${randomBytes(12).toString("hex")}`;
    const app = { id, slug, name: slug, privateKey, publicKey, permissions, webhookSecret };
    this.#apps.set(id, app);
    return app;
  }

  install(app: TestApp, account: string, repositories?: readonly string[]): number {
    const id = ++this.#last;
    this.#installations.set(id, { id, appId: app.id, account, repositories, suspended: false });
    return id;
  }

  suspend(id: number): void {
    const installation = this.#installations.get(id);
    if (installation !== undefined) this.#installations.set(id, { ...installation, suspended: true });
  }

  uninstall(id: number): void {
    this.#installations.delete(id);
  }

  removeApp(app: TestApp): void {
    this.#apps.delete(app.id);
  }

  registerManifest(manifest: unknown): string {
    const code = randomBytes(10).toString("hex");
    this.#manifests.set(code, String((manifest as { name?: unknown }).name));
    return code;
  }

  /** Undefined: not one of its paths. */
  answer(request: SideRequest): SideAnswer | undefined {
    if (request.path.endsWith("/settings/apps/new") && request.method === "POST") return this.#page(request);
    if (!request.path.startsWith(`${this.#prefix}/`)) return undefined;
    const route = `${request.method} ${request.path.slice(this.#prefix.length)}`;
    const conversion = /^POST \/app-manifests\/(\w+)\/conversions$/.exec(route);
    if (conversion !== null) return this.#convert(conversion[1] ?? "");
    if (route === "DELETE /installation/token") return this.#revoke(request);
    if (!/^\w+ \/(?:app(?:\/|$)|(?:repos\/[^/]+\/[^/]+|(?:orgs|users)\/[^/]+)\/installation$)/.test(route)) {
      return undefined;
    }
    const app = this.#appOf(request.authorization);
    if (typeof app === "string") return json(401, { message: app });
    const access = /^POST \/app\/installations\/(\d+)\/access_tokens$/.exec(route);
    if (access !== null) return this.#issue(app, Number(access[1]), request.text);
    if (route === "GET /app") return json(200, appView(app));
    const own = [...this.#installations.values()].filter(({ appId }) => appId === app.id);
    const view = (installation: Installation): unknown => installationView(installation, app);
    if (route === "GET /app/installations") return json(200, own.map(view));
    const found = own.find((each) => covers(each, route));
    return found === undefined ? json(404, { message: "Not Found" }) : json(200, view(found));
  }

  /** The registration page: takes the manifest, and sends the browser back with a code, as if it had been confirmed. */
  #page({ form, query }: SideRequest): SideAnswer {
    const manifest = JSON.parse(form.get("manifest") ?? "{}") as { redirect_url?: string };
    const url = URL.parse(manifest.redirect_url ?? "");
    if (url === null) return json(422, { message: "the manifest has no redirect_url" });
    url.searchParams.set("code", this.registerManifest(manifest));
    url.searchParams.set("state", query.get("state") ?? "");
    return { status: 302, headers: { location: url.href }, body: "" };
  }

  #convert(code: string): SideAnswer {
    const name = this.#manifests.get(code);
    if (name === undefined) return json(404, { message: "Not Found" });
    this.#manifests.delete(code);
    const app = this.#apps.get(this.addApp(name).id);
    if (app === undefined) return json(404, { message: "Not Found" });
    return json(201, {
      ...appView(app),
      client_id: `Iv1.${app.id}`,
      client_secret: "planted-client-secret",
      webhook_secret: app.webhookSecret,
      pem: app.privateKey,
    });
  }

  #issue(app: App, id: number, text: string): SideAnswer {
    const installation = this.#installations.get(id);
    if (installation?.appId !== app.id) return json(404, { message: "Not Found" });
    const asked = (text === "" ? {} : JSON.parse(text)) as {
      repositories?: string[];
      permissions?: Record<string, "read" | "write">;
    };
    const outside = (asked.repositories ?? []).filter(
      (name) => installation.repositories?.includes(name) === false || !this.#has(installation.account, name),
    );
    if (outside.length > 0) {
      return json(422, {
        message:
          "There is at least one repository that does not exist or is not accessible to the parent installation.",
      });
    }
    const lacking = Object.entries(asked.permissions ?? {}).filter(
      ([name, level]) => app.permissions[name] !== level && app.permissions[name] !== "write",
    );
    if (lacking.length > 0) {
      return json(422, { message: "The permissions requested are not granted to this installation." });
    }
    const token = `ghs_planted${randomBytes(18).toString("hex")}`;
    const permissions = asked.permissions ?? app.permissions;
    const repositories = asked.repositories ?? installation.repositories;
    this.issued.push({ token, installation: id, repositories, permissions });
    this.#access.addUser(
      `${app.slug}[bot]`,
      token,
      repositories?.map((name) => `${installation.account}/${name}`),
      permissions["contents"] === undefined ? "none" : permissions["contents"] === "read" ? "read" : "write",
    );
    return json(201, {
      token,
      expires_at: new Date(Date.now() + this.lifetime * 1000).toISOString(),
      permissions,
      repository_selection: repositories === undefined ? "all" : "selected",
    });
  }

  #has(owner: string, name: string): boolean {
    return this.#access.find(owner, name) !== undefined;
  }

  #revoke({ authorization }: SideRequest): SideAnswer {
    const token = (authorization ?? "").split(" ")[1] ?? "";
    if (!this.issued.some((each) => each.token === token) || this.revoked.has(token)) {
      return json(401, { message: "Bad credentials" });
    }
    this.revoked.add(token);
    this.#access.revoke(token);
    return { status: 204, body: "" };
  }

  /** The app whose key signed the JWT, or GitHub's refusal. */
  #appOf(authorization: string | undefined): App | string {
    const [head = "", body = "", signature = ""] = (authorization ?? "").replace(/^Bearer /i, "").split(".");
    let claims: { iss?: unknown; iat?: number; exp?: number };
    try {
      claims = JSON.parse(Buffer.from(body, "base64url").toString()) as typeof claims;
    } catch {
      return "A JSON web token could not be decoded";
    }
    const app = this.#apps.get(Number(claims.iss));
    if (app === undefined) return "Integration not found";
    const verified = createVerify("RSA-SHA256")
      .update(`${head}.${body}`)
      .verify(app.publicKey, Buffer.from(signature, "base64url"));
    if (!verified) return "A JSON web token could not be decoded";
    const now = Date.now() / 1000;
    if ((claims.iat ?? Infinity) > now) return "'Issued at' claim ('iat') must be an Integer in the past";
    const { exp = 0 } = claims;
    if (exp < now || exp > now + MAX_JWT_SECONDS)
      return "'Expiration time' claim ('exp') is too far in the future";
    return app;
  }
}

function covers(installation: Installation, route: string): boolean {
  if (route === `GET /app/installations/${installation.id}`) return true;
  const [, account = "", name] =
    /^GET \/repos\/([^/]+)\/([^/]+)\/installation$/.exec(route) ??
    /^GET \/(?:orgs|users)\/([^/]+)\/installation$/.exec(route) ??
    [];
  if (account.toLowerCase() !== installation.account.toLowerCase()) return false;
  return name === undefined || installation.repositories?.includes(name) !== false;
}

function appView(app: App): Record<string, unknown> {
  return {
    id: app.id,
    slug: app.slug,
    name: app.name,
    owner: { login: "acme" },
    permissions: app.permissions,
  };
}

function installationView(
  { id, account, repositories, suspended }: Installation,
  app: App,
): Record<string, unknown> {
  return {
    id,
    app_id: app.id,
    permissions: app.permissions,
    account: { login: account, type: "Organization" },
    repository_selection: repositories === undefined ? "all" : "selected",
    suspended_at: suspended ? "2026-01-01T00:00:00Z" : null,
  };
}

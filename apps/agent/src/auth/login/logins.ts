import type { Secret } from "@devplat/base";
import type { TokenInfo, VaultClient } from "@devplat/secret-store";
import { methodParts, type LoginKind, type StoreSection } from "../../config/sections/store-section.ts";
import { AgentError } from "../../errors.ts";
import { traced } from "../../telemetry/operation.ts";
import type { Adopted, Adoption, AdoptOptions } from "../token/adoption.ts";
import type { Certificates } from "../certificates/certificates.ts";
import { ldapLogin } from "./ldap.ts";
import type { LoginSteps } from "./login-flow.ts";
import { finishOidc, startOidc, type OidcMount, type OidcRequest } from "./oidc.ts";
import type { OidcCallback } from "./oidc-callback.ts";

export interface LoginsParts {
  readonly client: VaultClient;
  readonly store: StoreSection;
  readonly adoption: Adoption;
  /** Under the certificate methods: what a login of a person is for is then the bootstrap. */
  readonly certificates: Certificates | undefined;
}

export interface LoginOptions {
  /** `agent login --switch`. */
  readonly anyIdentity?: boolean;
}

/**
 * The logins that the configuration offers to a person, for the command line and the web UI. Each ends with the token
 * adopted.
 *
 * Every call throws AgentError `login_failed` | `login_cancelled` | `login_refused` | `identity_refused`, or
 * SecretStoreError.
 */
export class Logins {
  readonly #parts: LoginsParts;
  /** The method; under `mtls` a person is needed for the bootstrap only. */
  readonly kind: LoginKind;
  /** Action of the user: enter name and password, visit a page, or paste a token. */
  readonly interactiveKind: Exclude<LoginKind, "mtls">;

  constructor(parts: LoginsParts) {
    this.#parts = parts;
    this.kind = methodParts(parts.store.auth_method).kind;
    this.interactiveKind = this.kind === "mtls" ? parts.store.mtls.bootstrap_method : this.kind;
  }

  /** @throws AgentError `login_refused` under `store.borrow_only` */
  checkAllowed(): void {
    if (!this.#parts.store.borrow_only) return;
    throw new AgentError(
      "login_refused",
      "store.borrow_only is set: tokens come from peers only, never by a login",
      {
        hint: "Sign in on the host that lends its token.",
      },
    );
  }

  async ldap(
    credentials: { readonly username: string; readonly password: Secret },
    steps: LoginSteps,
    options: LoginOptions = {},
  ): Promise<TokenInfo> {
    this.checkAllowed();
    return await traced("auth.login", { method: "ldap" }, async () => {
      const token = await ldapLogin(this.#parts.client, this.#mount(), credentials, steps);
      return await this.#finish(token, steps, options);
    });
  }

  /** Begins a login in the browser, which comes back to `redirectUri`. */
  startOidc(redirectUri: string, signal: AbortSignal): Promise<OidcRequest> {
    this.checkAllowed();
    return startOidc(this.#parts.client, this.#oidcMount(), redirectUri, signal);
  }

  async finishOidc(
    request: OidcRequest,
    callback: OidcCallback,
    steps: LoginSteps,
    options: LoginOptions = {},
  ): Promise<TokenInfo> {
    return await traced("auth.login", { method: "oidc" }, async () => {
      const token = await finishOidc(this.#parts.client, this.#oidcMount(), request, callback, steps);
      return await this.#finish(token, steps, options);
    });
  }

  /** Signs in with the client certificate. @throws AgentError `certificate_unusable` when a bootstrap is needed */
  async certificate(signal: AbortSignal, options: LoginOptions = {}): Promise<TokenInfo> {
    this.checkAllowed();
    const { certificates } = this.#parts;
    if (certificates === undefined)
      throw new AgentError("login_refused", "store.auth_method has no certificate");
    const login = () => certificates.login({ ...options, signal });
    return (await traced("auth.login", { method: "mtls" }, login)).info;
  }

  /** A token that was pasted. */
  async token(token: Secret, signal: AbortSignal, options: LoginOptions = {}): Promise<TokenInfo> {
    this.checkAllowed();
    const adopt = () => this.#parts.adoption.adopt(token, { ...options, pasted: true, signal });
    return (await traced("auth.login", { method: "token" }, adopt)).info;
  }

  async #finish(token: Secret, { signal }: LoginSteps, options: LoginOptions): Promise<TokenInfo> {
    const adopt = (all: AdoptOptions): Promise<Adopted> =>
      this.#parts.certificates?.bootstrap(token, all) ?? this.#parts.adoption.adopt(token, all);
    return (await adopt({ ...options, signal })).info;
  }

  #oidcMount(): OidcMount {
    return { mount: this.#mount(), role: this.#parts.store.auth_role };
  }

  #mount(): string {
    const { auth_mount, mtls } = this.#parts.store;
    if (this.kind === "mtls") return mtls.bootstrap_mount ?? mtls.bootstrap_method;
    return auth_mount ?? this.kind;
  }
}

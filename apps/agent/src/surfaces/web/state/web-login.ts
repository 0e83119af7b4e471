import { randomBytes } from "node:crypto";
import type { Logger, Secret } from "@devplat/base";
import { SecretStoreError } from "@devplat/secret-store";
import type { Logins } from "../../../auth/login/logins.ts";
import {
  LOGIN_LIMIT_MS,
  LoginFlow,
  type LoginState,
  type LoginSteps,
} from "../../../auth/login/login-flow.ts";
import type { OidcRequest } from "../../../auth/login/oidc.ts";
import type { SignIn } from "../../../auth/sign-in.ts";
import { AgentError } from "../../../errors.ts";
import { PAGE_WAIT_MS } from "../../../secrets/page-wait.ts";

export interface WebLoginParts {
  readonly logins: Pick<
    Logins,
    "kind" | "interactiveKind" | "checkAllowed" | "ldap" | "startOidc" | "finishOidc" | "token"
  >;
  readonly signIn: Pick<SignIn, "ensure" | "state">;
  /** Initial user name of the form. */
  readonly username: string;
  /** Under a certificate method: whether there is no certificate to sign in with, and one may be made. */
  readonly needsCertificate: () => Promise<boolean>;
  readonly logger: Logger;
}

/** Contents of the login view. */
export interface LoginView {
  readonly method: Logins["kind"];
  /** Action of the user; undefined for none. */
  readonly form: Logins["interactiveKind"] | undefined;
  readonly username: string;
  /** State of the login under way, or of the last one if it failed. */
  readonly state: LoginState | undefined;
  /** Reason why no user is signed in. */
  readonly reason: string | null;
  /** The store does not respond to a request about a token. The daemon repeats the request by itself. */
  readonly storeUnreachable: boolean;
  /** `store.borrow_only`: no login here at all. */
  readonly borrowOnly: boolean;
}

/** A login that the user's browser has taken to the identity provider. */
interface Asked {
  readonly request: OidcRequest;
  readonly ticket: string;
  readonly end: AbortSignal;
}

/**
 * The login in the browser. One is under way at a time, because a daemon has one user: another one ends it. Each ends
 * with the daemon signed in.
 */
export class WebLogin {
  readonly #parts: WebLoginParts;
  #flow: LoginFlow<void> | undefined;
  #asked: Asked | undefined;

  constructor(parts: WebLoginParts) {
    this.#parts = parts;
  }

  /** State of the login under way, or of the last one if it failed; undefined otherwise. */
  state(): LoginState | undefined {
    const state = this.#flow?.state();
    return state?.kind === "done" ? undefined : state;
  }

  async view(): Promise<LoginView> {
    const { logins, signIn, username } = this.#parts;
    const { reason, storeUnreachable = false } = signIn.state();
    return {
      method: logins.kind,
      form: (await this.#refusal()) === undefined ? logins.interactiveKind : undefined,
      username,
      state: this.state(),
      reason,
      storeUnreachable,
      borrowOnly: this.#borrowOnly() !== undefined,
    };
  }

  /** Begins a login by user name and password; {@link WebLogin.state} tells its progress. @throws AgentError `login_refused` */
  async startLdap(username: string, password: Secret): Promise<void> {
    await this.#allow("ldap");
    this.#begin((steps) => this.#parts.logins.ldap({ username, password }, steps));
  }

  /**
   * Adopts a pasted token.
   * @throws AgentError `login_refused` | `login_failed` | `identity_refused`, or SecretStoreError
   */
  async pasteToken(token: Secret, signal: AbortSignal): Promise<void> {
    const { logins, signIn, logger } = this.#parts;
    if (logins.kind === "mtls") {
      throw new AgentError("login_refused", "the daemon signs in with its client certificate");
    }
    logins.checkAllowed();
    this.cancel();
    const shortly = AbortSignal.any([signal, AbortSignal.timeout(PAGE_WAIT_MS)]);
    try {
      await logins.token(token, shortly);
    } catch (error) {
      const refused = error instanceof SecretStoreError && error.code === "unauthenticated";
      throw refused ? new AgentError("login_failed", "the store does not accept this token") : error;
    }
    await signIn.ensure(shortly);
    logger.info({ by: "page" }, "signed in by a pasted token");
  }

  /**
   * Begins a login at the identity provider.
   * @param redirectUri where the browser comes back to
   * @returns where the browser has to go, and the ticket that it must bring back
   * @throws AgentError `login_refused` | `login_failed`, or SecretStoreError
   */
  async startOidc(redirectUri: string): Promise<{ url: string; ticket: string }> {
    await this.#allow("oidc");
    const end = AbortSignal.timeout(LOGIN_LIMIT_MS);
    const shortly = AbortSignal.any([end, AbortSignal.timeout(PAGE_WAIT_MS)]);
    const request = await this.#parts.logins.startOidc(redirectUri, shortly);
    const ticket = randomBytes(32).toString("base64url");
    this.#asked = { request, ticket, end };
    return { url: request.url, ticket };
  }

  /**
   * Goes on with what the browser has brought back. False if it belongs to no login that this browser began.
   * @param answer the callback's query
   */
  finishOidc(ticket: string | undefined, answer: URLSearchParams): boolean {
    const asked = this.#asked;
    if (asked === undefined || asked.end.aborted) return false;
    if (ticket !== asked.ticket || answer.get("state") !== asked.request.state) return false;
    this.#asked = undefined;
    this.#begin(async (steps) => {
      const error = answer.get("error");
      if (error !== null) {
        // RFC 6749 section 4.1.2.1; the description is the provider's free text and is not passed on.
        const code = /^[a-z_]{1,40}$/.test(error) ? ` (${error})` : "";
        throw new AgentError("login_failed", `the identity provider did not let you in${code}`);
      }
      const callback = { state: asked.request.state, code: answer.get("code") ?? "" };
      await this.#parts.logins.finishOidc(asked.request, callback, steps);
    });
    return true;
  }

  /** Enters a passcode. False if the login does not wait for one. */
  submitPasscode(code: Secret): boolean {
    return this.#flow?.submitPasscode(code) ?? false;
  }

  /** Ends the login under way, and forgets the last one. */
  cancel(): void {
    this.#flow?.cancel();
    this.#flow = undefined;
  }

  #begin(action: (steps: LoginSteps) => Promise<unknown>): void {
    const { signIn, logger } = this.#parts;
    this.#flow?.cancel();
    const flow = new LoginFlow<void>(async (steps) => {
      await action(steps);
      await signIn.ensure(steps.signal);
    });
    this.#flow = flow;
    flow.done.then(
      () => logger.info({ by: "page" }, "signed in"),
      // The page has the reason in words; it may name the user, so the log has the code alone.
      (error: unknown) => logger.warn({ by: "page", code: codeOf(error) }, "login failed"),
    );
  }

  async #allow(kind: "ldap" | "oidc"): Promise<void> {
    const refusal = await this.#refusal();
    if (refusal !== undefined) throw refusal;
    if (this.#parts.logins.interactiveKind !== kind)
      throw new AgentError("login_refused", "the configuration offers no login of this kind");
  }

  /** Why no login of a person is possible now. */
  async #refusal(): Promise<AgentError | undefined> {
    const borrowOnly = this.#borrowOnly();
    if (borrowOnly !== undefined || this.#parts.logins.kind !== "mtls") return borrowOnly;
    if (await this.#parts.needsCertificate()) return undefined;
    return new AgentError("login_refused", "the daemon signs in with its client certificate");
  }

  #borrowOnly(): AgentError | undefined {
    try {
      this.#parts.logins.checkAllowed();
      return undefined;
    } catch (error) {
      if (error instanceof AgentError) return error;
      throw error;
    }
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string"
    ? error.code
    : "internal";
}

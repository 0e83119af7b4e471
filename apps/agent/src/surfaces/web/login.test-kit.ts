import { Secret, silentLogger } from "@devplat/base";
import { SecretStoreError, type TokenInfo } from "@devplat/secret-store";
import type { LoginSteps } from "../../auth/login/login-flow.ts";
import { tokenInfo } from "../../auth/token/token-info.test-kit.ts";
import { AgentError } from "../../errors.ts";
import type { MemoryView } from "./memory-view.test-kit.ts";
import { WebLogin, type WebLoginParts } from "./state/web-login.ts";

/** Credentials that the store of {@link testLogin} accepts. */
export const GOOD_TOKEN = "hvs.good";
export const GOOD_PASSWORD = "right-password";
export const GOOD_PASSCODE = "123456";
/** A token of somebody else. */
export const FOREIGN_TOKEN = "hvs.foreign";
/** Parameters with which the identity provider sends the browser back. */
export const OIDC_STATE = "st_of_the_store";
export const OIDC_CODE = "code-1";

export interface TestLoginOptions {
  readonly kind?: "token" | "ldap" | "oidc" | "mtls";
  /** Under mtls: what a person does for the certificate. */
  readonly bootstrap?: "ldap" | "oidc";
  readonly needsCertificate?: boolean;
  readonly borrowOnly?: boolean;
  /** After the password: nothing more, a push approval that {@link approve} gives, or a passcode. */
  readonly second?: "push" | "passcode";
  readonly approve?: Promise<void>;
  /** Why nobody is signed in. Default: no token found. */
  readonly reason?: string;
  readonly storeUnreachable?: true;
}

const info = tokenInfo({ displayName: "ada", entityId: "entity-ada" });

/** A login against a store that exists only in these lines; a successful one signs the view in. */
export function testLogin(view: MemoryView, options: TestLoginOptions = {}): WebLogin {
  const { kind = "token", bootstrap = "oidc", borrowOnly = false } = options;
  let pending = false;
  const succeed = (): TokenInfo => {
    pending = true;
    return info;
  };
  const second = async (steps: LoginSteps): Promise<void> => {
    if (options.second === "push") {
      steps.show({ kind: "waiting_push", methods: ["duo"] });
      await options.approve;
    }
    for (let refused = false; options.second === "passcode"; refused = true) {
      if ((await steps.passcode("totp", refused)).reveal() === GOOD_PASSCODE) return;
    }
  };
  const checkAllowed = (): void => {
    if (borrowOnly) throw new AgentError("login_refused", "store.borrow_only is set");
  };
  const logins: WebLoginParts["logins"] = {
    kind,
    interactiveKind: kind === "mtls" ? bootstrap : kind,
    checkAllowed,
    ldap: async ({ username, password }, steps) => {
      if (username !== "ada" || password.reveal() !== GOOD_PASSWORD)
        throw new AgentError("login_failed", "the directory does not accept this user name and password");
      await second(steps);
      return succeed();
    },
    startOidc: async (redirectUri) => ({
      url: `https://idp.example.test/auth?state=${OIDC_STATE}&redirect_uri=${encodeURIComponent(redirectUri)}`,
      state: OIDC_STATE,
      clientNonce: new Secret("nonce"),
    }),
    finishOidc: async (_request, { code }, steps) => {
      if (code !== OIDC_CODE)
        throw new AgentError("login_failed", "the store does not accept the identity provider's answer");
      await second(steps);
      return succeed();
    },
    token: async (token) => {
      if (token.reveal() === FOREIGN_TOKEN) {
        throw new AgentError("identity_refused", "the token belongs to another identity than the last one", {
          hint: "If that is meant, run 'agent login --switch'.",
        });
      }
      if (token.reveal() !== GOOD_TOKEN) throw new SecretStoreError("unauthenticated", "no such token");
      return succeed();
    },
  };
  const signIn: WebLoginParts["signIn"] = {
    state: () => ({
      authenticated: false,
      source: "none",
      info: undefined,
      reason: options.reason ?? "no token found",
      ...(options.storeUnreachable && { storeUnreachable: true }),
    }),
    ensure: async () => {
      if (!pending) throw new AgentError("not_signed_in", "not signed in");
      view.set({ status: { authenticated: true } });
    },
  };
  return new WebLogin({
    logins,
    signIn,
    username: "ada",
    needsCertificate: () => Promise.resolve(options.needsCertificate ?? false),
    logger: silentLogger,
  });
}

import { Secret } from "@devplat/base";
import { noteLine, noteText, visible } from "@devplat/base/terminal";
import type { TokenInfo } from "@devplat/secret-store";
import { BRAND } from "../../brand.ts";
import { endedEarly, LOGIN_LIMIT_MS, type LoginState, type LoginSteps } from "../../auth/login/login-flow.ts";
import type { LoginOptions, Logins } from "../../auth/login/logins.ts";
import { CallbackListener } from "../../auth/login/oidc-callback.ts";
import { DesktopBrowser } from "../../desktop/browser.ts";
import type { LoginKind } from "../../config/sections/store-section.ts";
import { AgentError } from "../../errors.ts";
import { ask } from "../common/prompt.ts";

/** Advice where nobody can be asked. */
const WITHOUT_TERMINAL = `Run '${BRAND.command} login' in a terminal, set AGENT_TOKEN to a token, or store one in ~/${BRAND.tokenFile} with mode 0600.`;

export interface InteractiveLogin {
  readonly logins: Logins;
  /** Kind of the login: the configured method, or the bootstrap of a certificate. */
  readonly kind: Exclude<LoginKind, "mtls">;
  readonly username: string;
  /** `store.oidc_callback_port`. */
  readonly callbackPort: number;
  readonly environment: NodeJS.ProcessEnv;
}

/**
 * A login at the terminal. Its time limit is five minutes.
 * @param cancelled fires when the user gives up
 * @throws AgentError `login_failed` | `login_cancelled` | `login_refused` | `identity_refused`
 */
export async function loginAtTerminal(
  login: InteractiveLogin,
  cancelled: AbortSignal,
  options: LoginOptions = {},
): Promise<TokenInfo> {
  login.logins.checkAllowed();
  const signal = AbortSignal.any([cancelled, AbortSignal.timeout(LOGIN_LIMIT_MS)]);
  const steps = new TerminalSteps(signal, login.environment);
  try {
    if (login.kind === "oidc") return await withBrowser(login, steps, options);
    if (login.kind === "token") {
      const token = await steps.ask("Token for the secrets store: ");
      return await login.logins.token(token, signal, options);
    }
    const password = await steps.ask(`Password of ${login.username}: `);
    return await login.logins.ldap({ username: login.username, password }, steps, options);
  } catch (error) {
    throw signal.aborted ? endedEarly(cancelled) : error;
  }
}

async function withBrowser(
  { logins, callbackPort }: InteractiveLogin,
  steps: TerminalSteps,
  options: LoginOptions,
): Promise<TokenInfo> {
  const listener = await CallbackListener.open(callbackPort);
  try {
    const request = await logins.startOidc(listener.redirectUri, steps.signal);
    steps.show({ kind: "browser", url: request.url });
    const callback = await listener.expect(request.state, steps.signal);
    return await logins.finishOidc(request, callback, steps, options);
  } finally {
    listener.close();
  }
}

class TerminalSteps implements LoginSteps {
  readonly signal: AbortSignal;
  readonly #environment: NodeJS.ProcessEnv;

  constructor(signal: AbortSignal, environment: NodeJS.ProcessEnv) {
    this.signal = signal;
    this.#environment = environment;
  }

  show(state: LoginState): void {
    if (state.kind === "browser") {
      noteText(`Sign in with your browser at\n\n  ${visible(state.url)}\n\n`);
      void new DesktopBrowser(this.#environment).open(state.url);
    }
    if (state.kind === "waiting_push") {
      noteLine(`Approve the login on your device (${state.methods.join(", ")}) ...`);
    }
  }

  passcode(method: string, refused: boolean): Promise<Secret> {
    if (refused) noteLine("The passcode was not accepted.");
    return this.ask(`Passcode (${method}): `);
  }

  /** @throws AgentError `login_cancelled` if nothing is entered, or there is no terminal */
  async ask(question: string): Promise<Secret> {
    let text: string;
    try {
      text = (await ask(question, { hidden: true, signal: this.signal })).trim();
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      const options = process.stdin.isTTY ? {} : { hint: WITHOUT_TERMINAL };
      throw new AgentError("login_cancelled", `the login was given up: ${error.message}`, options);
    }
    if (text === "") throw new AgentError("login_cancelled", "the login was given up: nothing was entered");
    return new Secret(text);
  }
}

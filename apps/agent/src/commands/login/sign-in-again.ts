import type { TokenInfo } from "@devplat/secret-store";
import { noteLine } from "@devplat/base/terminal";
import type { LoginOptions } from "../../auth/login/logins.ts";
import type { StoreParts } from "../../assemble/store.ts";
import type { Host } from "../../host.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { AgentError } from "../../errors.ts";
import { loginAtTerminal } from "./interactive-login.ts";

/**
 * The configured login, at the terminal as far as it needs a person.
 * @throws AgentError, see {@link loginAtTerminal}
 */
export async function signInAgain(
  host: Host,
  { config }: LoadedConfig,
  parts: StoreParts,
  cancelled: AbortSignal,
  options: LoginOptions = {},
): Promise<TokenInfo> {
  const { logins } = parts;
  if (logins === undefined) throw new AgentError("login_refused", "the configured store has no login");
  if (logins.kind === "mtls") {
    try {
      return await logins.certificate(cancelled, options);
    } catch (error) {
      const needed = error instanceof AgentError && error.code === "certificate_unusable";
      // The user's own certificate is not ours to replace.
      if (!needed || config.store.mtls.byo !== undefined) throw error;
      noteLine(`${error.message}; getting one`);
    }
  }
  return await bootstrap(host, { config }, parts, cancelled, options);
}

/**
 * The login of a person. Under the certificate methods it gets the certificate.
 * @throws AgentError, see {@link loginAtTerminal}
 */
export async function bootstrap(
  { environment }: Host,
  { config }: Pick<LoadedConfig, "config">,
  { logins, facts }: StoreParts,
  cancelled: AbortSignal,
  options: LoginOptions = {},
): Promise<TokenInfo> {
  if (logins === undefined) throw new AgentError("login_refused", "the configured store has no login");
  const { username } = facts;
  const login = {
    logins,
    kind: logins.interactiveKind,
    username,
    callbackPort: config.store.oidc_callback_port,
    environment,
  };
  return loginAtTerminal(login, cancelled, options);
}

import type { Secret } from "@devplat/base";
import { SecretStoreError, type VaultClient } from "@devplat/secret-store";
import { AgentError } from "../../errors.ts";
import { finishLogin } from "./mfa.ts";
import type { LoginSteps } from "./login-flow.ts";

/**
 * Logs in with user name and password of a directory (Vault's ldap method), and the second factor if there is one.
 * @returns the store's token
 * @throws AgentError `login_failed` | `login_cancelled`
 */
export async function ldapLogin(
  client: VaultClient,
  mount: string,
  credentials: { readonly username: string; readonly password: Secret },
  steps: LoginSteps,
): Promise<Secret> {
  const { username, password } = credentials;
  // It becomes a segment of the path.
  if (username === "" || /[/\\\0]/.test(username) || /^\.\.?$/.test(username)) throw wrong();
  // An empty password is an anonymous bind to some directories, which always succeeds (RFC 4513 section 5.1.2).
  if (password.reveal() === "") throw wrong();
  try {
    const response = await client.request({
      method: "POST",
      path: `auth/${mount}/login/${username}`,
      body: JSON.stringify({ password: password.reveal() }),
      token: null,
      signal: steps.signal,
    });
    return await finishLogin(client, response, steps);
  } catch (error) {
    throw loginFault(error, mount);
  }
}

function loginFault(error: unknown, mount: string): unknown {
  if (!(error instanceof SecretStoreError)) return error;
  if (error.code === "denied") {
    // Vault answers a wrong password with 400; 403 is its answer for a path without a login behind it, and for a locked user.
    return new AgentError(
      "login_failed",
      `the store has no login at auth/${mount}, or has locked this user after wrong passwords`,
      {
        hint: "Check store.auth_mount and store.namespace. A lock ends by itself, by default after 15 minutes.",
        cause: error,
      },
    );
  }
  return error.code === "refused" ? wrong() : error;
}

function wrong(): AgentError {
  return new AgentError("login_failed", "the directory does not accept this user name and password");
}

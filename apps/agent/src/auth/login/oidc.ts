import { randomBytes } from "node:crypto";
import { Secret } from "@devplat/base";
import { SecretStoreError, type VaultClient } from "@devplat/secret-store";
import { AgentError } from "../../errors.ts";
import { finishLogin } from "./mfa.ts";
import type { LoginSteps } from "./login-flow.ts";

/** Bytes of the nonce by which only we can finish a login that we began. */
const NONCE_BYTES = 20;

/** A login that was begun: the user's browser opens `url` and returns with `state` and a code. */
export interface OidcRequest {
  readonly url: string;
  readonly state: string;
  readonly clientNonce: Secret;
}

export interface OidcMount {
  readonly mount: string;
  /** Undefined leaves it to the mount's default role. */
  readonly role: string | undefined;
}

/**
 * Asks the store where the user's browser has to go (Vault's oidc method, `auth_url`).
 * @param redirectUri where it comes back to; the role must allow it
 * @throws AgentError `login_failed`
 */
export async function startOidc(
  client: VaultClient,
  { mount, role }: OidcMount,
  redirectUri: string,
  signal: AbortSignal,
): Promise<OidcRequest> {
  const clientNonce = new Secret(randomBytes(NONCE_BYTES).toString("base64url"));
  const body = {
    redirect_uri: redirectUri,
    client_nonce: clientNonce.reveal(),
    ...(role !== undefined && { role }),
  };
  const refused = new AgentError("login_failed", "the store offers no OIDC login", {
    hint: `Check store.auth_role and store.auth_mount; the role's allowed_redirect_uris must hold ${redirectUri}.`,
  });
  let address: string;
  try {
    const response = await client.request({
      method: "POST",
      path: `auth/${mount}/oidc/auth_url`,
      body: JSON.stringify(body),
      token: null,
      signal,
    });
    address = response.get("data").get("auth_url").string();
  } catch (error) {
    // Vault denies a path that no login is mounted at.
    const none = error instanceof SecretStoreError && ["refused", "denied"].includes(error.code);
    throw none ? refused : error;
  }
  const url = URL.parse(address);
  const state = url?.searchParams.get("state") ?? "";
  // It is opened in the user's browser: nothing but a web address may come of it.
  if (url === null || !/^https?:$/.test(url.protocol) || state === "") throw refused;
  return { url: address, state, clientNonce };
}

/**
 * Ends a login with what the browser brought back. Only the request's own state is taken: a foreign one would sign
 * this user in with another identity.
 * @throws AgentError `login_failed` | `login_cancelled`
 */
export async function finishOidc(
  client: VaultClient,
  { mount }: OidcMount,
  request: OidcRequest,
  callback: { readonly state: string; readonly code: string },
  steps: LoginSteps,
): Promise<Secret> {
  if (callback.state !== request.state || callback.code === "") {
    throw new AgentError("login_failed", "the answer belongs to another login");
  }
  try {
    const response = await client.request({
      method: "GET",
      path: `auth/${mount}/oidc/callback`,
      query: { state: request.state, code: callback.code, client_nonce: request.clientNonce.reveal() },
      token: null,
      // A code can be redeemed once.
      repeatable: false,
      signal: steps.signal,
    });
    return await finishLogin(client, response, steps);
  } catch (error) {
    const refused = error instanceof SecretStoreError && ["refused", "denied"].includes(error.code);
    throw refused
      ? new AgentError("login_failed", "the store does not accept the identity provider's answer")
      : error;
  }
}

import { Secret, type Clock } from "@devplat/base";
import { HttpClient } from "@devplat/http-client";
import { OauthClient, OauthError, type OauthClientOptions, type OauthTokens } from "@devplat/oauth";
import type { Fields } from "@devplat/secret-store";
import { failed, lost } from "./http.ts";

/** Names of the fields that an OAuth token becomes. Times are ISO 8601. */
const ACCESS = "access_token";
const REFRESH = "refresh_token";
const ISSUED = "issued_at";
const EXPIRES = "expires_at";

/** A public client of a server, through the proxy of the environment. */
export function publicClient(options: Omit<OauthClientOptions, "http">): OauthClient {
  return new OauthClient({ ...options, http: new HttpClient({ environment: process.env }) });
}

/** A token as fields. @throws AgentError `enrolment_failed` | `enrolment_cancelled` */
export async function tokenFields(url: string, asked: Promise<OauthTokens>, clock: Clock): Promise<Fields> {
  const tokens = await asked.catch((error: unknown) => {
    throw oauthFault(error, url, "the token was refused");
  });
  return fieldsOf(tokens, clock);
}

/** The fields of a secret that hold a token. */
export function fieldsOf(tokens: OauthTokens, clock: Clock): Fields {
  const { accessToken, refreshToken: renewal, tokenType, scope, expiresIn = 0 } = tokens;
  const fields = new Map([[ACCESS, accessToken.reveal()]]);
  if (renewal !== undefined) fields.set(REFRESH, renewal.reveal());
  fields.set("token_type", tokenType);
  if (scope !== undefined) fields.set("scope", scope);
  fields.set(ISSUED, new Date(clock.now()).toISOString());
  if (expiresIn > 0) fields.set(EXPIRES, new Date(clock.now() + expiresIn * 1000).toISOString());
  return fields;
}

/** An error of an OAuth client in an enrolment's words. @param what as in `the token was refused` */
export function oauthFault(error: unknown, url: string, what: string): unknown {
  if (!(error instanceof OauthError)) return lost(error, new URL(url).host);
  return failed(`${what}: ${error.reason ?? "no reason given"} (status ${error.status})`);
}

/** Past half of its life a token is renewed, if it came with the means. Milliseconds since the epoch. */
export function halfOfLife(held: Fields): number | undefined {
  const [issued, expires] = [held.get(ISSUED), held.get(EXPIRES)];
  if (typeof issued !== "string" || typeof expires !== "string" || typeof held.get(REFRESH) !== "string") {
    return undefined;
  }
  const half = (Date.parse(issued) + Date.parse(expires)) / 2;
  return Number.isFinite(half) ? half : undefined;
}

/** RFC 6749 section 6. A server that gives no new refresh token keeps the old one. */
export async function refreshToken(
  tokenUrl: string,
  clientId: string,
  held: Fields,
  clock: Clock,
  signal: AbortSignal,
): Promise<Fields> {
  const old = held.get(REFRESH);
  if (typeof old !== "string") throw failed("there is nothing to renew the token with");
  const client = publicClient({ tokenUrl, clientId });
  return tokenFields(tokenUrl, client.refresh(new Secret(old), signal), clock);
}

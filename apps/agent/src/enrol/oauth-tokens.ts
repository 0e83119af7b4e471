import type { Clock } from "@devplat/base";
import { textOf } from "@devplat/base/json-member";
import type { Fields } from "@devplat/secret-store";
import { errorCode, failed, secondsOf, postForm, type Answer } from "./http.ts";

/** Names of the fields that an OAuth token becomes. Times are ISO 8601. */
const ACCESS = "access_token";
const REFRESH = "refresh_token";
const ISSUED = "issued_at";
const EXPIRES = "expires_at";

/** A successful token answer (RFC 6749 section 5.1) as fields. @throws AgentError `enrolment_failed` */
export function tokenFields({ status, body }: Answer, clock: Clock): Fields {
  const token = textOf(body, ACCESS);
  if (token === undefined) throw failed(`the token was refused: ${errorCode(body)} (status ${status})`);
  const fields = new Map([[ACCESS, token]]);
  for (const name of [REFRESH, "token_type", "scope"]) {
    const value = textOf(body, name);
    if (value !== undefined) fields.set(name, value);
  }
  const seconds = secondsOf(body, "expires_in", 0);
  fields.set(ISSUED, new Date(clock.now()).toISOString());
  if (seconds > 0) fields.set(EXPIRES, new Date(clock.now() + seconds * 1000).toISOString());
  return fields;
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
  const form = { grant_type: "refresh_token", refresh_token: old, client_id: clientId };
  const answer = await postForm(tokenUrl, form, signal);
  return tokenFields(answer, clock);
}

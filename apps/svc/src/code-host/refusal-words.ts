import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { auditText } from "../audit/audit-text.ts";

/** Bytes of a refusal's body that are looked at: an error of an API takes 300. */
export const MAX_REFUSAL_BYTES = 16 * 1024;

/** A 401 of the code host to the credential behind one of our tokens, or to a request without a credential. */
export interface HostUnauthorized {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Its beginning, as it came. */
  readonly body: Buffer;
  /** Whether the credential was renewed, but the request could not be sent again. */
  readonly renewed: boolean;
}

/** Makes the text of the 403 that stands for a 401 of the code host. */
export type ExplainUnauthorized = (answer: HostUnauthorized) => string;

/** Words that say only that the credential is missing or not valid (GitHub, GitLab, Gitea, Forgejo). */
const ABOUT_CREDENTIAL =
  /^(?:bad credentials|requires authentication|unauthori[sz]ed|authentication (?:failed|required)|invalid (?:username|user name|credentials?|token|access token|login)\b.*|(?:the )?(?:access )?token (?:is|was|has) .*|user does not exist.*|only signed in user is allowed.*)\W*$/i;

/**
 * Explains a 401: what to do about the stored credential, and the code host's own words, which come first where they speak of
 * something else (a one-time password, a lock, single sign-on).
 *
 * @param standing what to do if the credential is not valid
 * @param authorization what was sent; it is never repeated
 */
export function explainUnauthorized(
  standing: string | undefined,
  authorization: string | undefined,
): ExplainUnauthorized | undefined {
  if (standing === undefined) return undefined;
  return ({ headers, body, renewed }) => {
    if (renewed) return "The stored credential had expired and was renewed just now: send the request again";
    const words = refusalWords(headers, body, authorization);
    if (words === undefined) return standing;
    if (ABOUT_CREDENTIAL.test(words)) return `${standing} (the code host says: ${words})`;
    return `The code host says: ${words} (status 401. If this is about the credential: ${standing})`;
  };
}

/** The words of a refusal, in one line; undefined: it has none that a person would understand. */
function refusalWords(
  headers: HostUnauthorized["headers"],
  body: Buffer,
  authorization: string | undefined,
): string | undefined {
  const words = bodyWords(headers, body) ?? challengeWords(text(headers["www-authenticate"]));
  const oneTime = /^required\b/i.test(text(headers["x-github-otp"]))
    ? "a one-time password is required"
    : undefined;
  const all = [words, oneTime].filter((each) => each !== undefined).join("; ");
  const line = auditText(withoutSecret(all, authorization).replaceAll(/\s+/g, " ").trim());
  return line === undefined || line === "" ? undefined : line;
}

function bodyWords(headers: HostUnauthorized["headers"], body: Buffer): string | undefined {
  const type = text(headers["content-type"]);
  const plain = decoded(body, text(headers["content-encoding"]));
  if (plain === undefined || plain.trim() === "") return undefined;
  if (/\bjson\b/i.test(type)) return jsonMessage(plain);
  return /^\s*text\/plain\b/i.test(type) ? plain : undefined;
}

function jsonMessage(plain: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(plain);
    if (typeof parsed !== "object" || parsed === null) return undefined;
    const fields = parsed as Record<string, unknown>;
    return [fields["message"], fields["error_description"], fields["error"]].find(
      (each) => typeof each === "string" && each !== "",
    ) as string | undefined;
  } catch {
    return undefined;
  }
}

/** `error_description` of a Bearer challenge (RFC 6750 section 3). */
function challengeWords(challenge: string): string | undefined {
  return /\berror_description="([^"]*)"/i.exec(challenge)?.[1];
}

function decoded(body: Buffer, encoding: string): string | undefined {
  const limit = { maxOutputLength: MAX_REFUSAL_BYTES };
  try {
    switch (encoding.toLowerCase()) {
      case "":
      case "identity":
        return body.toString("utf8");
      case "gzip":
        return gunzipSync(body, limit).toString("utf8");
      case "deflate":
        return inflateSync(body, limit).toString("utf8");
      case "br":
        return brotliDecompressSync(body, limit).toString("utf8");
      default:
        return undefined;
    }
  } catch {
    return undefined;
  }
}

/** The text without what was sent as a credential, in whichever form it is repeated. */
function withoutSecret(words: string, authorization = ""): string {
  const sent = authorization.slice(authorization.indexOf(" ") + 1);
  const pair = /^basic /i.test(authorization) ? Buffer.from(sent, "base64").toString("utf8") : "";
  const secrets = [sent, pair, pair.slice(pair.indexOf(":") + 1)].filter((each) => each.length >= 4);
  return secrets.reduce((kept, secret) => kept.replaceAll(secret, "***"), words);
}

function text(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value[0] : value)?.trim() ?? "";
}

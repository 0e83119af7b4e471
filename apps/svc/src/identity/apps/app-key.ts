import { createPrivateKey, createSign, type KeyObject } from "node:crypto";
import { Secret } from "@devplat/base";

/** Seconds that a JWT is valid. The maximum of the code host is ten minutes. */
const LIFETIME_SECONDS = 540;
/** Seconds that it is dated back. Clocks differ, and the code host accepts no JWT from the future. */
const BACKDATED_SECONDS = 60;
const MIN_RSA_BITS = 2048;

/**
 * A private key out of its text: PEM, PKCS 1 as the code host gives it or PKCS 8; line breaks may be written as `\n`,
 * as in variables of the environment.
 *
 * @returns the key, or a description of the fault without the text
 */
export function readAppKey(text: Secret): KeyObject | string {
  const pem = text.reveal().replaceAll("\\n", "\n").trim();
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    return "is not a private key in PEM form without a passphrase";
  }
  if (key.asymmetricKeyType !== "rsa") return "is not an RSA key, which is what the code host gives";
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  return bits < MIN_RSA_BITS ? `has ${bits} bits, and ${MIN_RSA_BITS} are needed` : key;
}

/** Credential of an app: a JWT (RFC 7519) signed with its key. */
export function appJwt(appId: string, key: KeyObject, now: number): Secret {
  const seconds = Math.floor(now / 1000);
  const claims = { iss: appId, iat: seconds - BACKDATED_SECONDS, exp: seconds + LIFETIME_SECONDS };
  const text = [{ alg: "RS256", typ: "JWT" }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  return new Secret(`${text}.${createSign("RSA-SHA256").update(text).sign(key, "base64url")}`);
}

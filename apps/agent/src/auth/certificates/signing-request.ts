import { sign, type KeyObject } from "node:crypto";

/** DER tags (ITU-T X.690 section 8). */
const TAG = {
  integer: 0x02,
  bitString: 0x03,
  utf8: 0x0c,
  sequence: 0x30,
  set: 0x31,
  attributes: 0xa0,
} as const;
/** Object identifiers and parameters, in DER. */
const COMMON_NAME = Buffer.from("0603550403", "hex");
const RSA_SHA256 = Buffer.from("06092a864886f70d01010b0500", "hex");
const ECDSA_SHA256 = Buffer.from("06082a8648ce3d040302", "hex");
const ECDSA_SHA384 = Buffer.from("06082a8648ce3d040303", "hex");
/** Longest common name (RFC 5280 appendix A, ub-common-name), in characters. */
export const MAX_COMMON_NAME = 64;

/** A certificate signing request (RFC 2986) in PEM form, for a name and nothing else. */
export function signingRequest(
  commonName: string,
  keys: { publicKey: KeyObject; privateKey: KeyObject },
): string {
  const info = der(
    TAG.sequence,
    der(TAG.integer, Buffer.from([0])),
    der(TAG.sequence, der(TAG.set, der(TAG.sequence, COMMON_NAME, der(TAG.utf8, Buffer.from(commonName))))),
    keys.publicKey.export({ type: "spki", format: "der" }),
    der(TAG.attributes),
  );
  const { algorithm, hash } = algorithmOf(keys.privateKey);
  const signature = sign(hash, info, keys.privateKey);
  const request = der(
    TAG.sequence,
    info,
    der(TAG.sequence, algorithm),
    // No unused bits.
    der(TAG.bitString, Buffer.from([0]), signature),
  );
  const lines = request.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE REQUEST-----\n${lines.join("\n")}\n-----END CERTIFICATE REQUEST-----\n`;
}

function algorithmOf(key: KeyObject): { algorithm: Buffer; hash: "sha256" | "sha384" } {
  if (key.asymmetricKeyType === "rsa") return { algorithm: RSA_SHA256, hash: "sha256" };
  return key.asymmetricKeyDetails?.namedCurve === "secp384r1"
    ? { algorithm: ECDSA_SHA384, hash: "sha384" }
    : { algorithm: ECDSA_SHA256, hash: "sha256" };
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  if (content.length < 0x80) return Buffer.concat([Buffer.from([tag, content.length]), content]);
  const digits = content.length.toString(16);
  const length = Buffer.from(digits.padStart(digits.length + (digits.length % 2), "0"), "hex");
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, content]);
}

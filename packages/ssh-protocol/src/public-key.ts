import { createPublicKey, type KeyObject, type webcrypto } from "node:crypto";
import { SshProtocolError } from "./errors.ts";
import { WireReader, WireWriter, withoutLeadingZeros } from "./wire.ts";

/** Curves of ECDSA keys (RFC 5656 section 10.1): names in SSH and in JSON Web Keys, bytes of a coordinate, hash. */
export const ECDSA_CURVES = {
  "ecdsa-sha2-nistp256": { ssh: "nistp256", jwk: "P-256", bytes: 32, hash: "sha256" },
  "ecdsa-sha2-nistp384": { ssh: "nistp384", jwk: "P-384", bytes: 48, hash: "sha384" },
  "ecdsa-sha2-nistp521": { ssh: "nistp521", jwk: "P-521", bytes: 66, hash: "sha512" },
} as const;
export type EcdsaType = keyof typeof ECDSA_CURVES;

/** NIST's lower limit for RSA, and OpenSSH's upper one, in bits. */
export const MIN_RSA_BITS = 2048;
export const MAX_RSA_BITS = 16_384;
const ED25519_BYTES = 32;
/** First byte of a point that has both coordinates (SEC 1 section 2.3.3). */
const UNCOMPRESSED = 4;

export interface Ed25519Key {
  readonly type: "ssh-ed25519";
  readonly point: Buffer;
}

export interface EcdsaKey {
  readonly type: EcdsaType;
  /** Uncompressed: 4, x, y. */
  readonly point: Buffer;
}

/** Numbers are big-endian without leading zeros. */
export interface RsaKey {
  readonly type: "ssh-rsa";
  readonly exponent: Buffer;
  readonly modulus: Buffer;
}

/** A key in a FIDO device (PROTOCOL.u2f). It can be shown and compared; its signatures are not verified here. */
export interface SecurityKey {
  readonly type: "sk-ssh-ed25519@openssh.com" | "sk-ecdsa-sha2-nistp256@openssh.com";
  readonly point: Buffer;
  readonly application: string;
}

export type PublicKey = Ed25519Key | EcdsaKey | RsaKey | SecurityKey;

export function isEcdsaType(type: string): type is EcdsaType {
  return Object.hasOwn(ECDSA_CURVES, type);
}

/** The type that a blob of a key or certificate begins with. @throws SshProtocolError */
export function keyTypeOf(blob: Uint8Array): string {
  return new WireReader(blob).name();
}

/**
 * Decodes a public key blob (RFC 4253 section 6.6, RFC 5656 section 3.1, RFC 8709 section 4).
 *
 * @throws SshProtocolError
 */
export function decodePublicKey(blob: Uint8Array): PublicKey {
  const reader = new WireReader(blob);
  const key = readPublicKeyFields(reader.name(), reader);
  reader.end();
  return key;
}

/** Reads the fields of a key that follow its type; a certificate has them after its nonce. @throws SshProtocolError */
export function readPublicKeyFields(type: string, reader: WireReader): PublicKey {
  if (isEcdsaType(type)) return { type, point: ecdsaPoint(type, reader) };
  switch (type) {
    case "ssh-ed25519":
      return { type, point: ed25519Point(reader) };
    case "ssh-rsa": {
      const exponent = reader.mpint();
      return checkedRsa({ type, exponent, modulus: reader.mpint() });
    }
    case "sk-ssh-ed25519@openssh.com":
      return { type, point: ed25519Point(reader), application: reader.text() };
    case "sk-ecdsa-sha2-nistp256@openssh.com":
      return { type, point: ecdsaPoint("ecdsa-sha2-nistp256", reader), application: reader.text() };
    default:
      throw new SshProtocolError("unsupported", "the type of the key is not supported");
  }
}

export function encodePublicKey(key: PublicKey): Buffer {
  const writer = new WireWriter().string(key.type);
  writePublicKeyFields(key, writer);
  return writer.bytes();
}

export function writePublicKeyFields(key: PublicKey, writer: WireWriter): void {
  switch (key.type) {
    case "ssh-rsa":
      writer.mpint(key.exponent).mpint(key.modulus);
      break;
    case "ssh-ed25519":
      writer.string(key.point);
      break;
    case "sk-ssh-ed25519@openssh.com":
      writer.string(key.point).string(key.application);
      break;
    case "sk-ecdsa-sha2-nistp256@openssh.com":
      writer.string("nistp256").string(key.point).string(key.application);
      break;
    default:
      writer.string(ECDSA_CURVES[key.type].ssh).string(key.point);
  }
}

/** The key as `node:crypto` uses it. @throws SshProtocolError `bad_key`, or `unsupported` for a security key */
export function keyObjectOf(key: PublicKey): KeyObject {
  try {
    return createPublicKey({ format: "jwk", key: publicJwk(key) });
  } catch (error) {
    if (error instanceof SshProtocolError) throw error;
    throw new SshProtocolError("bad_key", "the numbers of the public key do not make a key");
  }
}

/** Members of the JSON Web Key (RFC 7517) that hold the public half. @throws SshProtocolError `unsupported` */
export function publicJwk(key: PublicKey): webcrypto.JsonWebKey {
  switch (key.type) {
    case "ssh-ed25519":
      return { kty: "OKP", crv: "Ed25519", x: key.point.toString("base64url") };
    case "ssh-rsa":
      return { kty: "RSA", e: key.exponent.toString("base64url"), n: key.modulus.toString("base64url") };
    case "sk-ssh-ed25519@openssh.com":
    case "sk-ecdsa-sha2-nistp256@openssh.com":
      throw new SshProtocolError("unsupported", "security keys are not supported here");
    default: {
      const { jwk, bytes } = ECDSA_CURVES[key.type];
      return {
        kty: "EC",
        crv: jwk,
        x: key.point.subarray(1, 1 + bytes).toString("base64url"),
        y: key.point.subarray(1 + bytes).toString("base64url"),
      };
    }
  }
}

/** The public half of a key of `node:crypto`. @throws SshProtocolError `unsupported` for other kinds, `weak_key` */
export function publicKeyOf(key: KeyObject): PublicKey {
  const kind = key.asymmetricKeyType;
  if (kind !== "ed25519" && kind !== "ec" && kind !== "rsa") {
    throw new SshProtocolError("unsupported", "SSH keys are Ed25519, ECDSA or RSA keys");
  }
  const { crv, x, y, e, n } = publicHalf(key).export({ format: "jwk" });
  const bytes = (member: string | undefined): Buffer => Buffer.from(member ?? "", "base64url");
  if (kind === "ed25519") return { type: "ssh-ed25519", point: bytes(x) };
  if (kind === "rsa") {
    return checkedRsa({
      type: "ssh-rsa",
      exponent: withoutLeadingZeros(bytes(e)),
      modulus: withoutLeadingZeros(bytes(n)),
    });
  }
  for (const [type, curve] of Object.entries(ECDSA_CURVES)) {
    if (curve.jwk === crv) {
      return { type: type as EcdsaType, point: Buffer.concat([Buffer.of(UNCOMPRESSED), bytes(x), bytes(y)]) };
    }
  }
  throw new SshProtocolError("unsupported", "SSH has no name for the curve of this key");
}

function publicHalf(key: KeyObject): KeyObject {
  return key.type === "private" ? createPublicKey(key) : key;
}

function ed25519Point(reader: WireReader): Buffer {
  const point = reader.string();
  if (point.length !== ED25519_BYTES) {
    throw new SshProtocolError("bad_value", "the length of an Ed25519 key is wrong");
  }
  return point;
}

function ecdsaPoint(type: EcdsaType, reader: WireReader): Buffer {
  const curve = ECDSA_CURVES[type];
  if (reader.name() !== curve.ssh) {
    throw new SshProtocolError("bad_value", "the curve of an ECDSA key does not match its type");
  }
  const point = reader.string();
  if (point.length !== 1 + 2 * curve.bytes || point[0] !== UNCOMPRESSED) {
    throw new SshProtocolError(
      "bad_value",
      "the point of an ECDSA key is not an uncompressed point of its curve",
    );
  }
  return point;
}

/** Returns an RSA key whose length is allowed. @throws SshProtocolError `weak_key`, `too_long` */
export function checkedRsa(key: RsaKey): RsaKey {
  const bits = key.modulus.length * 8 - Math.clz32(key.modulus[0] ?? 0) + 24;
  if (bits < MIN_RSA_BITS) {
    throw new SshProtocolError("weak_key", `an RSA key has fewer than ${MIN_RSA_BITS} bits`);
  }
  if (bits > MAX_RSA_BITS) {
    throw new SshProtocolError("too_long", `an RSA key has more than ${MAX_RSA_BITS} bits`);
  }
  return key;
}

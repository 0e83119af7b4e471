import { createECDH, createPrivateKey, type KeyObject, type webcrypto } from "node:crypto";
import { SshProtocolError } from "./errors.ts";
import {
  ECDSA_CURVES,
  checkedRsa,
  encodePublicKey,
  publicJwk,
  publicKeyOf,
  readPublicKeyFields,
  writePublicKeyFields,
  type EcdsaKey,
  type PublicKey,
  type RsaKey,
} from "./public-key.ts";
import type { WireReader, WireWriter } from "./wire.ts";

/** OpenSSL's names of the curves, which `createECDH` takes. */
const OPENSSL_CURVES = {
  "ecdsa-sha2-nistp256": "prime256v1",
  "ecdsa-sha2-nistp384": "secp384r1",
  "ecdsa-sha2-nistp521": "secp521r1",
} as const;
const SEED_BYTES = 32;

/** Both halves of a key. */
export interface KeyPair {
  readonly publicKey: PublicKey;
  readonly privateKey: KeyObject;
}

/**
 * Reads the fields of a private key that follow its type, in a file (PROTOCOL.key) and in a request to add a key
 * (draft-ietf-sshm-ssh-agent section 5.2).
 *
 * @throws SshProtocolError `bad_key` when the two halves do not match
 */
export function readPrivateKeyFields(type: string, reader: WireReader): KeyPair {
  return readPrivateHalf(
    type === "ssh-rsa" ? readRsaNumbers(reader) : readPublicKeyFields(type, reader),
    reader,
  );
}

/** Reads the private half of a key whose public half was read before. @throws SshProtocolError */
export function readPrivateHalf(publicKey: PublicKey, reader: WireReader): KeyPair {
  const jwk = { ...publicJwk(publicKey), ...privateMembers(publicKey, reader) };
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey({ format: "jwk", key: jwk });
  } catch {
    throw mismatch();
  }
  if (!encodePublicKey(publicKeyOf(privateKey)).equals(encodePublicKey(publicKey))) throw mismatch();
  return { publicKey, privateKey };
}

/** Writes the fields that {@link readPrivateKeyFields} reads. */
export function writePrivateKeyFields(pair: KeyPair, writer: WireWriter): void {
  const { publicKey } = pair;
  // The numbers stand in the other order than in a public key.
  if (publicKey.type === "ssh-rsa") writer.mpint(publicKey.modulus).mpint(publicKey.exponent);
  else writePublicKeyFields(publicKey, writer);
  writePrivateHalf(pair, writer);
}

/** Writes the fields that {@link readPrivateHalf} reads. */
export function writePrivateHalf({ publicKey, privateKey }: KeyPair, writer: WireWriter): void {
  const { d, p, q, qi } = privateKey.export({ format: "jwk" });
  const bytes = (member: string | undefined): Buffer => Buffer.from(member ?? "", "base64url");
  if (publicKey.type === "ssh-ed25519") writer.string(Buffer.concat([bytes(d), publicKey.point]));
  else if (publicKey.type === "ssh-rsa") for (const member of [d, qi, p, q]) writer.mpint(bytes(member));
  else writer.mpint(bytes(d));
}

function readRsaNumbers(reader: WireReader): RsaKey {
  const modulus = reader.mpint();
  return checkedRsa({ type: "ssh-rsa", exponent: reader.mpint(), modulus });
}

/** Members of the JSON Web Key (RFC 7518 section 6, RFC 8037 section 2) that hold the private half. */
function privateMembers(publicKey: PublicKey, reader: WireReader): webcrypto.JsonWebKey {
  switch (publicKey.type) {
    case "ssh-ed25519": {
      // The seed and, once more, the public key.
      const both = reader.string();
      if (!both.subarray(SEED_BYTES).equals(publicKey.point)) throw mismatch();
      return { d: both.toString("base64url", 0, SEED_BYTES) };
    }
    case "ssh-rsa":
      return rsaMembers(publicKey, reader);
    case "sk-ssh-ed25519@openssh.com":
    case "sk-ecdsa-sha2-nistp256@openssh.com":
      throw new SshProtocolError("unsupported", "the private half of a security key is in its device");
    default:
      return { d: ecdsaScalar(publicKey, reader).toString("base64url") };
  }
}

/** The private number in the length that a JSON Web Key has. Node does not check that it belongs to the point. */
function ecdsaScalar({ type, point }: EcdsaKey, reader: WireReader): Buffer {
  const scalar = padded(reader.mpint(), ECDSA_CURVES[type].bytes);
  const ecdh = createECDH(OPENSSL_CURVES[type]);
  try {
    ecdh.setPrivateKey(scalar);
  } catch {
    throw mismatch();
  }
  if (!ecdh.getPublicKey().equals(point)) throw mismatch();
  return scalar;
}

/** SSH leaves out the two exponents of the Chinese remainder theorem. Node does not check that the numbers match. */
function rsaMembers({ exponent, modulus }: RsaKey, reader: WireReader): webcrypto.JsonWebKey {
  const [d, qi, p, q] = [reader.mpint(), reader.mpint(), reader.mpint(), reader.mpint()];
  const [dNumber, qiNumber, pNumber, qNumber] = [numberOf(d), numberOf(qi), numberOf(p), numberOf(q)];
  if (pNumber < 2n || qNumber < 2n || pNumber * qNumber !== numberOf(modulus)) throw mismatch();
  const [dp, dq] = [dNumber % (pNumber - 1n), dNumber % (qNumber - 1n)];
  const fits =
    (dp * numberOf(exponent)) % (pNumber - 1n) === 1n &&
    (dq * numberOf(exponent)) % (qNumber - 1n) === 1n &&
    (qiNumber * qNumber) % pNumber === 1n;
  if (!fits) throw mismatch();
  const text = (bytes: Buffer): string => bytes.toString("base64url");
  return { d: text(d), p: text(p), q: text(q), dp: text(bytesOf(dp)), dq: text(bytesOf(dq)), qi: text(qi) };
}

function numberOf(bytes: Buffer): bigint {
  return bytes.length === 0 ? 0n : BigInt(`0x${bytes.toString("hex")}`);
}

function bytesOf(number: bigint): Buffer {
  const hex = number.toString(16);
  return Buffer.from(hex.padStart(hex.length + (hex.length % 2), "0"), "hex");
}

/** @throws SshProtocolError `bad_key` for a number that is too long */
export function padded(number: Buffer, length: number): Buffer {
  if (number.length > length) throw mismatch();
  return Buffer.concat([Buffer.alloc(length - number.length), number]);
}

function mismatch(): SshProtocolError {
  return new SshProtocolError("bad_key", "the private half of the key does not match its public half");
}

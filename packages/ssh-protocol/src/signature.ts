import { sign as nodeSign, verify as nodeVerify } from "node:crypto";
import { SshProtocolError } from "./errors.ts";
import { padded, type KeyPair } from "./private-key-fields.ts";
import { ECDSA_CURVES, isEcdsaType, keyObjectOf, type EcdsaType, type PublicKey } from "./public-key.ts";
import { WireReader, WireWriter } from "./wire.ts";

/** Signatures of RSA keys (RFC 8332) and their hashes. */
const RSA_HASHES = { "rsa-sha2-256": "sha256", "rsa-sha2-512": "sha512" } as const;
export type RsaSignatureAlgorithm = keyof typeof RSA_HASHES;
/** Every other type of key has one algorithm, of the same name. */
export type SignatureAlgorithm = "ssh-ed25519" | EcdsaType | RsaSignatureAlgorithm;

export interface Signature {
  readonly algorithm: SignatureAlgorithm;
  readonly value: Buffer;
}

/**
 * Decodes a signature (RFC 4253 section 6.6). The form of `value` is checked when the signature is verified.
 *
 * @throws SshProtocolError `refused_algorithm` for RSA with SHA-1, `unsupported` for other algorithms
 */
export function decodeSignature(blob: Uint8Array): Signature {
  const reader = new WireReader(blob);
  const algorithm = reader.name();
  if (algorithm === "ssh-rsa") throw refusedSha1();
  if (algorithm !== "ssh-ed25519" && !isEcdsaType(algorithm) && !isRsaAlgorithm(algorithm)) {
    throw new SshProtocolError("unsupported", "the algorithm of the signature is not supported");
  }
  const value = reader.string();
  reader.end();
  return { algorithm, value };
}

export function encodeSignature({ algorithm, value }: Signature): Buffer {
  return new WireWriter().string(algorithm).string(value).bytes();
}

/** Signs data; `rsaAlgorithm` counts for RSA keys only. Returns the encoded signature. */
export function sign(
  { publicKey, privateKey }: KeyPair,
  data: Uint8Array,
  rsaAlgorithm: RsaSignatureAlgorithm = "rsa-sha2-512",
): Buffer {
  switch (publicKey.type) {
    case "ssh-ed25519":
      return encodeSignature({ algorithm: publicKey.type, value: nodeSign(null, data, privateKey) });
    case "ssh-rsa":
      return encodeSignature({
        algorithm: rsaAlgorithm,
        value: nodeSign(RSA_HASHES[rsaAlgorithm], data, privateKey),
      });
    case "sk-ssh-ed25519@openssh.com":
    case "sk-ecdsa-sha2-nistp256@openssh.com":
      throw new SshProtocolError("unsupported", "only its device can sign with a security key");
    default: {
      const { hash, bytes } = ECDSA_CURVES[publicKey.type];
      const both = nodeSign(hash, data, { key: privateKey, dsaEncoding: "ieee-p1363" });
      const value = new WireWriter().mpint(both.subarray(0, bytes)).mpint(both.subarray(bytes)).bytes();
      return encodeSignature({ algorithm: publicKey.type, value });
    }
  }
}

/**
 * Tells whether a key made an encoded signature of data. A signature of another algorithm than the key's is not valid.
 *
 * @throws SshProtocolError for a malformed key or signature, and for algorithms that are not supported or refused
 */
export function verify(publicKey: PublicKey, signature: Uint8Array, data: Uint8Array): boolean {
  const { algorithm, value } = decodeSignature(signature);
  const key = keyObjectOf(publicKey);
  if (publicKey.type === "ssh-rsa") {
    if (!isRsaAlgorithm(algorithm)) return false;
    // Some signers leave out leading zeros, and OpenSSH accepts that.
    const whole = value.length < publicKey.modulus.length ? padded(value, publicKey.modulus.length) : value;
    return nodeVerify(RSA_HASHES[algorithm], data, key, whole);
  }
  if (algorithm !== publicKey.type) return false;
  if (algorithm === "ssh-ed25519") return nodeVerify(null, data, key, value);
  const { hash, bytes } = ECDSA_CURVES[algorithm];
  const reader = new WireReader(value);
  const [r, s] = [reader.mpint(), reader.mpint()];
  reader.end();
  if (r.length > bytes || s.length > bytes) return false;
  const both = Buffer.concat([padded(r, bytes), padded(s, bytes)]);
  return nodeVerify(hash, data, { key, dsaEncoding: "ieee-p1363" }, both);
}

export function refusedSha1(): SshProtocolError {
  return new SshProtocolError("refused_algorithm", "RSA signatures with SHA-1 are refused");
}

function isRsaAlgorithm(name: string): name is RsaSignatureAlgorithm {
  return Object.hasOwn(RSA_HASHES, name);
}

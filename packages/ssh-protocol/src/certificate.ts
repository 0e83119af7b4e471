import { SshProtocolError } from "./errors.ts";
import { decodePublicKey, keyTypeOf, readPublicKeyFields, type PublicKey } from "./public-key.ts";
import { verify } from "./signature.ts";
import { WireReader } from "./wire.ts";

/** Most principals of a certificate, as in OpenSSH. */
export const MAX_CERTIFICATE_PRINCIPALS = 256;
/** `validBefore` of a certificate that has no end. */
export const NO_END = 2n ** 64n - 1n;
const SUFFIX = "-cert-v01@openssh.com";
const KINDS = new Map([
  [1, "user"],
  [2, "host"],
] as const);

/** A certificate of a user's or a host's key (PROTOCOL.certkeys). */
export interface Certificate {
  /** For example `ssh-ed25519-cert-v01@openssh.com`. */
  readonly type: string;
  readonly publicKey: PublicKey;
  readonly serial: bigint;
  readonly kind: "user" | "host";
  readonly keyId: string;
  /** User names or host names. */
  readonly principals: readonly string[];
  /** Seconds since 1970; valid from `validAfter` until before `validBefore`. */
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly criticalOptions: ReadonlyMap<string, Buffer>;
  readonly extensions: ReadonlyMap<string, Buffer>;
  /** Blob of the authority's key. */
  readonly signatureKey: Buffer;
  readonly signature: Buffer;
  /** The bytes that are signed. */
  readonly signedPart: Buffer;
}

/** Why a certificate does not prove the name of a host. */
export type HostCertificateFault =
  | "not-a-host-certificate"
  | "not-yet-valid"
  | "expired"
  | "other-host"
  | "critical-option"
  | "bad-signature";

export function isCertificateType(type: string): boolean {
  return type.endsWith(SUFFIX);
}

/** Decodes a certificate; its signature is not checked. @throws SshProtocolError */
export function decodeCertificate(blob: Uint8Array): Certificate {
  const reader = new WireReader(blob);
  const type = reader.name();
  if (!isCertificateType(type)) throw new SshProtocolError("bad_value", "the blob is not a certificate");
  // The nonce.
  reader.string();
  const publicKey = readPublicKeyFields(plainTypeOf(type), reader);
  const serial = reader.uint64();
  const kind = KINDS.get(reader.uint32() as 1 | 2);
  if (kind === undefined) {
    throw new SshProtocolError("bad_value", "a certificate is neither for a user nor for a host");
  }
  const keyId = reader.text();
  const principals = readPrincipals(reader.string());
  const [validAfter, validBefore] = [reader.uint64(), reader.uint64()];
  const criticalOptions = readOptions(reader.string());
  const extensions = readOptions(reader.string());
  // Reserved.
  reader.string();
  const signatureKey = reader.string();
  if (isCertificateType(keyTypeOf(signatureKey))) {
    throw new SshProtocolError("bad_value", "a certificate is signed by the key of another certificate");
  }
  const signedPart = Buffer.from(blob.buffer, blob.byteOffset, reader.offset);
  const signature = reader.string();
  reader.end();
  return {
    type,
    publicKey,
    serial,
    kind,
    keyId,
    principals,
    validAfter,
    validBefore,
    criticalOptions,
    extensions,
    signatureKey,
    signature,
    signedPart,
  };
}

/** The key of a blob that is a public key or a certificate. @throws SshProtocolError */
export function publicKeyOfBlob(blob: Uint8Array): PublicKey {
  return isCertificateType(keyTypeOf(blob)) ? decodeCertificate(blob).publicKey : decodePublicKey(blob);
}

/** The text in the value of an option, such as `force-command`. @throws SshProtocolError */
export function optionText(value: Buffer): string {
  const reader = new WireReader(value);
  const text = reader.text();
  reader.end();
  return text;
}

/** Tells whether the authority's key signed the certificate. @throws SshProtocolError */
export function verifyCertificateSignature({ signatureKey, signature, signedPart }: Certificate): boolean {
  return verify(decodePublicKey(signatureKey), signature, signedPart);
}

/** Tells whether a time in milliseconds is within the certificate's validity. */
export function isCertificateCurrent({ validAfter, validBefore }: Certificate, nowMs: number): boolean {
  const now = BigInt(Math.floor(nowMs / 1000));
  return now >= validAfter && now < validBefore;
}

/**
 * Returns the reason why a certificate does not prove that its key belongs to a host, if there is one. The caller
 * decides whether it trusts the authority. Principals are not patterns, as in ssh. Stricter than OpenSSH: a
 * certificate without principals proves no name.
 *
 * @throws SshProtocolError for a malformed signature
 */
export function hostCertificateFault(
  certificate: Certificate,
  { host, nowMs }: { host: string; nowMs: number },
): HostCertificateFault | undefined {
  if (certificate.kind !== "host") return "not-a-host-certificate";
  if (!isCertificateCurrent(certificate, nowMs)) {
    return BigInt(Math.floor(nowMs / 1000)) < certificate.validAfter ? "not-yet-valid" : "expired";
  }
  if (!certificate.principals.includes(host.toLowerCase())) return "other-host";
  // None is defined for hosts, and one that is not understood must be refused.
  if (certificate.criticalOptions.size > 0) return "critical-option";
  return verifyCertificateSignature(certificate) ? undefined : "bad-signature";
}

function plainTypeOf(type: string): string {
  const plain = type.slice(0, -SUFFIX.length);
  return plain.startsWith("sk-") ? `${plain}@openssh.com` : plain;
}

function readPrincipals(packed: Buffer): string[] {
  const reader = new WireReader(packed);
  const principals: string[] = [];
  while (reader.remaining > 0) {
    if (principals.length === MAX_CERTIFICATE_PRINCIPALS) {
      throw new SshProtocolError(
        "too_long",
        `a certificate has more than ${MAX_CERTIFICATE_PRINCIPALS} principals`,
      );
    }
    principals.push(reader.text());
  }
  return principals;
}

function readOptions(packed: Buffer): Map<string, Buffer> {
  const reader = new WireReader(packed);
  const options = new Map<string, Buffer>();
  let last = "";
  while (reader.remaining > 0) {
    const name = reader.name();
    if (name <= last)
      throw new SshProtocolError("bad_value", "the options of a certificate are not in order");
    options.set(name, reader.string());
    last = name;
  }
  return options;
}

import { createHash } from "node:crypto";
import { publicKeyOfBlob } from "./certificate.ts";
import { SshProtocolError } from "./errors.ts";
import { decodePem, encodePem } from "./pem.ts";
import { verify } from "./signature.ts";
import { WireReader, WireWriter } from "./wire.ts";

const MAGIC = Buffer.from("SSHSIG");
const VERSION = 1;
const LABEL = "SSH SIGNATURE";
const HASHES = ["sha256", "sha512"] as const;
export type SshsigHash = (typeof HASHES)[number];

/** The data that a key signs for a file or a commit (PROTOCOL.sshsig section 3). */
export interface SshsigData {
  /** Purpose of the signature, such as `git` or `file`. */
  readonly namespace: string;
  readonly hash: SshsigHash;
  /** Hash of the message. */
  readonly digest: Buffer;
}

/** A signature of a file or a commit (PROTOCOL.sshsig section 2). */
export interface Sshsig {
  /** Blob of a key or certificate. */
  readonly publicKey: Buffer;
  readonly namespace: string;
  readonly hash: SshsigHash;
  readonly signature: Buffer;
}

/** Tells whether data to be signed claims to be of this format. */
export function isSshsigData(data: Buffer): boolean {
  return data.subarray(0, MAGIC.length).equals(MAGIC);
}

/** Decodes the data that a key is asked to sign. @throws SshProtocolError */
export function decodeSshsigData(data: Buffer): SshsigData {
  const reader = readMagic(data);
  const [namespace, hash] = readNamespaceAndHash(reader);
  const digest = reader.string();
  reader.end();
  if (digest.length !== createHash(hash).digest().length) {
    throw new SshProtocolError("bad_value", "the length of the message's hash is wrong");
  }
  return { namespace, hash, digest };
}

export function encodeSshsigData({ namespace, hash, digest }: SshsigData): Buffer {
  return new WireWriter().raw(MAGIC).string(namespace).string("").string(hash).string(digest).bytes();
}

/** Reads a signature as `ssh-keygen -Y sign` writes it. @throws SshProtocolError */
export function decodeSshsig(text: string): Sshsig {
  const { label, bytes } = decodePem(text);
  if (label !== LABEL) throw new SshProtocolError("bad_text", "the text is not an SSH signature");
  const reader = readMagic(bytes);
  if (reader.uint32() !== VERSION) {
    throw new SshProtocolError("unsupported", "the version of the SSH signature is not supported");
  }
  const publicKey = reader.string();
  const [namespace, hash] = readNamespaceAndHash(reader);
  const signature = reader.string();
  reader.end();
  return { publicKey, namespace, hash, signature };
}

/** Writes a signature in the form that `ssh-keygen -Y verify` reads. */
export function encodeSshsig({ publicKey, namespace, hash, signature }: Sshsig): string {
  const bytes = new WireWriter()
    .raw(MAGIC)
    .uint32(VERSION)
    .string(publicKey)
    .string(namespace)
    .string("")
    .string(hash)
    .string(signature)
    .bytes();
  return encodePem({ label: LABEL, bytes });
}

/** Tells whether the key in a signature signed this message. Whose key it is, is another question. @throws SshProtocolError */
export function verifySshsig(
  { publicKey, namespace, hash, signature }: Sshsig,
  message: Uint8Array,
): boolean {
  const digest = createHash(hash).update(message).digest();
  return verify(publicKeyOfBlob(publicKey), signature, encodeSshsigData({ namespace, hash, digest }));
}

function readMagic(bytes: Buffer): WireReader {
  if (!isSshsigData(bytes)) throw new SshProtocolError("bad_value", "the bytes do not begin with SSHSIG");
  const reader = new WireReader(bytes);
  reader.raw(MAGIC.length);
  return reader;
}

function readNamespaceAndHash(reader: WireReader): [string, SshsigHash] {
  const namespace = reader.text();
  if (namespace === "") throw new SshProtocolError("bad_value", "the namespace of an SSH signature is empty");
  // Reserved: ignored, as the format says.
  reader.string();
  const name = reader.name();
  const hash = HASHES.find((each) => each === name);
  if (hash === undefined) {
    throw new SshProtocolError("unsupported", "the hash of the SSH signature is not supported");
  }
  return [namespace, hash];
}

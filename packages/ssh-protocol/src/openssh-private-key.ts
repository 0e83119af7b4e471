import { randomBytes, type KeyObject } from "node:crypto";
import type { Secret } from "@devplat/base";
import { SshProtocolError } from "./errors.ts";
import {
  MAX_KDF_ROUNDS,
  WRITTEN_CIPHER,
  blockBytesOf,
  decryptPrivatePart,
  encryptPrivatePart,
  isKeyCipher,
  tagBytesOf,
  wrongPassphrase,
  type KeyCipher,
  type KeyDerivation,
} from "./key-encryption.ts";
import { encodePem } from "./pem.ts";
import { readPrivateKeyFields, writePrivateKeyFields, type KeyPair } from "./private-key-fields.ts";
import { decodePublicKey, encodePublicKey, publicKeyOf, type PublicKey } from "./public-key.ts";
import { WireReader, WireWriter } from "./wire.ts";

/** Label of the PEM block. */
export const OPENSSH_LABEL = "OPENSSH PRIVATE KEY";
const MAGIC = Buffer.from("openssh-key-v1\0");
/** ssh-keygen's own number since OpenSSH 9.4. */
const DEFAULT_KDF_ROUNDS = 24;
const SALT_BYTES = 16;
/** Block that an unencrypted private part is padded to. */
const PLAIN_BLOCK_BYTES = 8;

/** The part of a private key file that can be read without the passphrase (PROTOCOL.key section 1). */
export interface OpenSshKeyEnvelope {
  readonly publicKey: PublicKey;
  /** Undefined: the private part is not encrypted. */
  readonly encryption: { readonly cipher: KeyCipher; readonly derivation: KeyDerivation } | undefined;
  readonly privatePart: Buffer;
  readonly tag: Buffer;
}

/** A private key with the comment that its file has. */
export interface CommentedKeyPair extends KeyPair {
  readonly comment: string;
}

/** Decodes the outer part of a file that holds one key. @throws SshProtocolError */
export function decodeOpenSshKeyEnvelope(bytes: Uint8Array): OpenSshKeyEnvelope {
  const reader = new WireReader(bytes);
  if (!reader.raw(Math.min(MAGIC.length, reader.remaining)).equals(MAGIC)) {
    throw new SshProtocolError("bad_value", "the private key does not begin with openssh-key-v1");
  }
  const [cipher, kdf] = [reader.name(), reader.name()];
  const options = new WireReader(reader.string());
  if (reader.uint32() !== 1)
    throw new SshProtocolError("unsupported", "the file does not hold one private key");
  const publicKey = decodePublicKey(reader.string());
  const privatePart = reader.string();
  if (cipher === "none" && kdf === "none") {
    options.end();
    reader.end();
    return { publicKey, encryption: undefined, privatePart, tag: Buffer.alloc(0) };
  }
  if (!isKeyCipher(cipher) || kdf !== "bcrypt") {
    throw new SshProtocolError(
      "unsupported",
      "the cipher or key derivation of the private key is not supported",
    );
  }
  const derivation = { salt: options.string(), rounds: options.uint32() };
  options.end();
  if (derivation.rounds < 1 || derivation.rounds > MAX_KDF_ROUNDS) {
    throw new SshProtocolError("too_long", `the key derivation does not have 1 to ${MAX_KDF_ROUNDS} rounds`);
  }
  const tag = reader.raw(tagBytesOf(cipher));
  reader.end();
  return { publicKey, encryption: { cipher, derivation }, privatePart, tag };
}

/**
 * Opens the private part. The key derivation takes about 15 ms for each round and blocks the thread.
 *
 * @throws SshProtocolError `wrong_passphrase`, and others for a damaged file
 */
export function openOpenSshKey(
  { publicKey, encryption, privatePart, tag }: OpenSshKeyEnvelope,
  passphrase?: Secret,
): CommentedKeyPair {
  const block = encryption === undefined ? PLAIN_BLOCK_BYTES : blockBytesOf(encryption.cipher);
  if (privatePart.length % block !== 0) {
    throw new SshProtocolError("bad_value", "the private part of the key is not padded");
  }
  if (encryption === undefined) return readPrivatePart(privatePart, publicKey);
  if (passphrase === undefined) throw wrongPassphrase();
  const plain = decryptPrivatePart(privatePart, { ...encryption, passphrase: passphrase.reveal(), tag });
  // These two numbers are equal if the passphrase is right.
  if (plain.length < 8 || plain.readUInt32BE() !== plain.readUInt32BE(4)) throw wrongPassphrase();
  return readPrivatePart(plain, publicKey);
}

/** Writes a private key as ssh-keygen does; with a passphrase it is encrypted with aes256-ctr. */
export function encodeOpenSshKey(
  privateKey: KeyObject,
  { comment, passphrase }: { comment: string; passphrase: Secret | undefined },
): string {
  const publicKey = publicKeyOf(privateKey);
  const check = randomBytes(4);
  const content = new WireWriter().raw(check).raw(check).string(publicKey.type);
  writePrivateKeyFields({ publicKey, privateKey }, content);
  const plain = content.string(comment).bytes();
  const envelope = new WireWriter().raw(MAGIC);
  if (passphrase === undefined) {
    envelope.string("none").string("none").string("").uint32(1).string(encodePublicKey(publicKey));
    envelope.string(withPadding(plain, PLAIN_BLOCK_BYTES));
  } else {
    const derivation = { salt: randomBytes(SALT_BYTES), rounds: DEFAULT_KDF_ROUNDS };
    const options = new WireWriter().string(derivation.salt).uint32(derivation.rounds).bytes();
    const encryption = { passphrase: passphrase.reveal(), derivation };
    envelope
      .string(WRITTEN_CIPHER)
      .string("bcrypt")
      .string(options)
      .uint32(1)
      .string(encodePublicKey(publicKey));
    envelope.string(encryptPrivatePart(withPadding(plain, blockBytesOf(WRITTEN_CIPHER)), encryption));
  }
  return encodePem({ label: OPENSSH_LABEL, bytes: envelope.bytes() });
}

function readPrivatePart(plain: Buffer, publicKey: PublicKey): CommentedKeyPair {
  const reader = new WireReader(plain);
  if (reader.uint32() !== reader.uint32()) {
    throw new SshProtocolError("bad_value", "the check numbers of the private key differ");
  }
  const pair = readPrivateKeyFields(reader.name(), reader);
  const comment = reader.text();
  if (!reader.rest().every((byte, index) => byte === index + 1)) {
    throw new SshProtocolError("bad_value", "the padding of the private key is wrong");
  }
  if (!encodePublicKey(pair.publicKey).equals(encodePublicKey(publicKey))) {
    throw new SshProtocolError("bad_key", "the private key and the public key of the file differ");
  }
  return { ...pair, comment };
}

/** Padding is 1, 2, 3, … up to a whole block. */
function withPadding(content: Buffer, block: number): Buffer {
  const missing = (block - (content.length % block)) % block;
  return Buffer.concat([content, Buffer.from(Array.from({ length: missing }, (_, index) => index + 1))]);
}

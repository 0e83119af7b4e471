import { createCipheriv, createDecipheriv, timingSafeEqual } from "node:crypto";
import { pbkdf } from "bcrypt-pbkdf";
import { SshProtocolError } from "./errors.ts";
import { poly1305 } from "./poly1305.ts";

/** Ciphers of OpenSSH private keys (PROTOCOL.key): Node's name, and bytes of key, IV, block and tag. */
const CIPHERS = {
  "aes128-cbc": { node: "aes-128-cbc", key: 16, iv: 16, block: 16, tag: 0 },
  "aes192-cbc": { node: "aes-192-cbc", key: 24, iv: 16, block: 16, tag: 0 },
  "aes256-cbc": { node: "aes-256-cbc", key: 32, iv: 16, block: 16, tag: 0 },
  "aes128-ctr": { node: "aes-128-ctr", key: 16, iv: 16, block: 16, tag: 0 },
  "aes192-ctr": { node: "aes-192-ctr", key: 24, iv: 16, block: 16, tag: 0 },
  "aes256-ctr": { node: "aes-256-ctr", key: 32, iv: 16, block: 16, tag: 0 },
  "aes128-gcm@openssh.com": { node: "aes-128-gcm", key: 16, iv: 12, block: 16, tag: 16 },
  "aes256-gcm@openssh.com": { node: "aes-256-gcm", key: 32, iv: 12, block: 16, tag: 16 },
  // The second half of the key is for the length field of a packet, which a file does not have.
  "chacha20-poly1305@openssh.com": { node: "chacha20", key: 64, iv: 0, block: 8, tag: 16 },
} as const;
export type KeyCipher = keyof typeof CIPHERS;

/**
 * Most rounds of the key derivation. A round takes about 15 ms and blocks the thread; ssh-keygen's default is 16 or
 * 24, and people choose up to a few hundred.
 */
export const MAX_KDF_ROUNDS = 1000;

/** Key and IV come from a passphrase by bcrypt_pbkdf with this salt and number of rounds. */
export interface KeyDerivation {
  readonly salt: Buffer;
  readonly rounds: number;
}

export function isKeyCipher(name: string): name is KeyCipher {
  return Object.hasOwn(CIPHERS, name);
}

/** Length of the blocks that the private part is padded to, in bytes. */
export function blockBytesOf(cipher: KeyCipher): number {
  return CIPHERS[cipher].block;
}

/** Length of the authentication tag that follows the private part, in bytes. */
export function tagBytesOf(cipher: KeyCipher): number {
  return CIPHERS[cipher].tag;
}

/** The cipher that private keys are written with: ssh-keygen's own choice. */
export const WRITTEN_CIPHER = "aes256-ctr" satisfies KeyCipher;

/** Encrypts a padded private part with {@link WRITTEN_CIPHER}. */
export function encryptPrivatePart(
  plain: Buffer,
  { passphrase, derivation }: { passphrase: string; derivation: KeyDerivation },
): Buffer {
  const { key, iv } = derive(WRITTEN_CIPHER, passphrase, derivation);
  return createCipheriv(CIPHERS[WRITTEN_CIPHER].node, key, iv).setAutoPadding(false).update(plain);
}

/**
 * Decrypts a private part. A wrong passphrase is only noticed here if the cipher has a tag.
 *
 * @throws SshProtocolError `wrong_passphrase`
 */
export function decryptPrivatePart(
  encrypted: Buffer,
  {
    cipher,
    passphrase,
    derivation,
    tag,
  }: { cipher: KeyCipher; passphrase: string; derivation: KeyDerivation; tag: Buffer },
): Buffer {
  const { key, iv } = derive(cipher, passphrase, derivation);
  const { node, tag: tagBytes } = CIPHERS[cipher];
  if (node === "chacha20") return decryptChaCha(encrypted, key, tag);
  if (tagBytes === 0) {
    return createDecipheriv(node, key, iv).setAutoPadding(false).update(encrypted);
  }
  const decipher = createDecipheriv(node as "aes-256-gcm", key, iv, { authTagLength: tagBytes });
  decipher.setAuthTag(tag);
  const plain = decipher.update(encrypted);
  try {
    decipher.final();
  } catch {
    throw wrongPassphrase();
  }
  return plain;
}

export function wrongPassphrase(): SshProtocolError {
  return new SshProtocolError("wrong_passphrase", "the passphrase does not open the private key");
}

/** PROTOCOL.chacha20poly1305: block 0 of the key stream is the key of the tag, the text begins with block 1. */
function decryptChaCha(encrypted: Buffer, key: Buffer, tag: Buffer): Buffer {
  // Node takes the block number and the nonce as one value of 16 bytes; the nonce of a file is 0.
  const iv = (block: number): Buffer => Buffer.concat([Buffer.of(block), Buffer.alloc(15)]);
  const stream = (block: number, bytes: Buffer): Buffer =>
    createCipheriv("chacha20", key.subarray(0, 32), iv(block)).update(bytes);
  if (!timingSafeEqual(poly1305(stream(0, Buffer.alloc(32)), encrypted), tag)) throw wrongPassphrase();
  return stream(1, encrypted);
}

function derive(cipher: KeyCipher, passphrase: string, { salt, rounds }: KeyDerivation) {
  const { key: keyBytes, iv: ivBytes } = CIPHERS[cipher];
  const secret = Buffer.from(passphrase);
  const derived = Buffer.alloc(keyBytes + ivBytes);
  // It refuses an empty passphrase and an empty salt.
  if (pbkdf(secret, secret.length, salt, salt.length, derived, derived.length, rounds) !== 0) {
    throw wrongPassphrase();
  }
  return { key: derived.subarray(0, keyBytes), iv: derived.subarray(keyBytes) };
}

export { SSH_ERROR_CODES, SshProtocolError, type SshErrorCode } from "./errors.ts";
export { MAX_MPINT_BYTES, WireReader, WireWriter } from "./wire.ts";
export {
  MAX_RSA_BITS,
  MIN_RSA_BITS,
  decodePublicKey,
  encodePublicKey,
  keyObjectOf,
  keyTypeOf,
  publicKeyOf,
  type EcdsaKey,
  type EcdsaType,
  type Ed25519Key,
  type PublicKey,
  type RsaKey,
  type SecurityKey,
} from "./public-key.ts";
export { fingerprint } from "./fingerprint.ts";
export { decodePublicKeyLine, encodePublicKeyLine, type PublicKeyLine } from "./public-key-line.ts";
export { MAX_KDF_ROUNDS } from "./key-encryption.ts";
export type { KeyPair } from "./private-key-fields.ts";
export { encodeOpenSshKey, type CommentedKeyPair } from "./openssh-private-key.ts";
export { MAX_PRIVATE_KEY_CHARS, readPrivateKey, type PrivateKeyReading } from "./private-key.ts";

import { createPrivateKey, type KeyObject } from "node:crypto";
import type { Secret } from "@devplat/base";
import { SshProtocolError } from "./errors.ts";
import { wrongPassphrase } from "./key-encryption.ts";
import {
  OPENSSH_LABEL,
  decodeOpenSshKeyEnvelope,
  openOpenSshKey,
  type CommentedKeyPair,
} from "./openssh-private-key.ts";
import { decodePem } from "./pem.ts";
import { publicKeyOf, type PublicKey } from "./public-key.ts";

/** Longest text of a private key: an RSA key of 16,384 bits has 13 KiB. */
export const MAX_PRIVATE_KEY_CHARS = 64 * 1024;
/** Labels of the formats that Node reads itself: PKCS#8, and the older ones of ssh-keygen and OpenSSL. */
const NODE_LABEL = /^\s*-----BEGIN (ENCRYPTED |RSA |EC )?PRIVATE KEY-----/;
/** A line in the older formats (RFC 1421 section 4.6.1.1). */
const OLD_ENCRYPTION = "Proc-Type: 4,ENCRYPTED";

/** Result of reading a private key. */
export type PrivateKeyReading =
  | ({ readonly state: "open" } & CommentedKeyPair)
  /** OpenSSH's format shows the public half without the passphrase, and PKCS#8 does not. */
  | { readonly state: "needs-passphrase"; readonly publicKey: PublicKey | undefined };

/**
 * Reads a private key: OpenSSH's format (PROTOCOL.key), or PKCS#8 (RFC 5958). A passphrase that is not needed is
 * ignored. With a passphrase this blocks the thread for the key derivation, usually for half a second.
 *
 * @throws SshProtocolError, `wrong_passphrase` among others
 */
export function readPrivateKey(text: string, passphrase?: Secret): PrivateKeyReading {
  if (text.length > MAX_PRIVATE_KEY_CHARS)
    throw new SshProtocolError("too_long", "the private key is too long");
  if (NODE_LABEL.test(text)) return readWithNode(text, passphrase);
  const { label, bytes } = decodePem(text);
  if (label !== OPENSSH_LABEL) {
    throw new SshProtocolError("unsupported", "the text is not a private key of a known format");
  }
  const envelope = decodeOpenSshKeyEnvelope(bytes);
  if (envelope.encryption !== undefined && passphrase === undefined) {
    return { state: "needs-passphrase", publicKey: envelope.publicKey };
  }
  return { state: "open", ...openOpenSshKey(envelope, passphrase) };
}

function readWithNode(text: string, passphrase: Secret | undefined): PrivateKeyReading {
  const isEncrypted = text.includes("-----BEGIN ENCRYPTED") || text.includes(OLD_ENCRYPTION);
  if (isEncrypted && passphrase === undefined) return { state: "needs-passphrase", publicKey: undefined };
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey({ key: text, passphrase: passphrase?.reveal() ?? "" });
  } catch {
    // OpenSSL does not tell a wrong passphrase from a damaged key.
    if (isEncrypted) throw wrongPassphrase();
    throw new SshProtocolError("bad_key", "the private key cannot be read");
  }
  return { state: "open", privateKey, publicKey: publicKeyOf(privateKey), comment: "" };
}

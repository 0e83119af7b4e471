import { Secret } from "@devplat/base";
import { visible } from "@devplat/base/terminal";
import type { Fields } from "@devplat/secret-store";
import {
  SshProtocolError,
  decodePublicKey,
  decodePublicKeyLine,
  encodePublicKey,
  readPrivateKey,
  type KeyPair,
  type PublicKey,
} from "@devplat/ssh-protocol";

/** Longest comment that is shown, in characters. */
const MAX_COMMENT_CHARS = 200;

/** A private key under a passphrase. */
export interface LockedKey {
  readonly text: Secret;
  /** The field `passphrase` of the secret, where its owner has put one. */
  readonly passphrase: Secret | undefined;
}

/** An SSH key as the fields of a secret hold it. */
export interface StoredKey {
  /** Undefined for a PKCS#8 key under a passphrase whose secret has no field `public_key`. */
  readonly publicKey: PublicKey | undefined;
  /** Empty if the secret has none. */
  readonly comment: string;
  readonly privateHalf: { readonly open: KeyPair } | { readonly locked: LockedKey };
}

/**
 * Reads the SSH key of a secret: `private_key`, and next to it `public_key` and `passphrase`, which may be missing.
 * @returns undefined if the secret has no field `private_key`
 * @throws SshProtocolError
 */
export function readStoredKey(fields: Fields): StoredKey | undefined {
  const text = fields.get("private_key");
  if (text === undefined) return undefined;
  if (typeof text !== "string" || text.trim() === "") {
    throw new SshProtocolError("bad_text", "the field private_key is not the text of a private key");
  }
  const line = publicLine(fields);
  const reading = readPrivateKey(text);
  if (reading.state === "open") {
    const { publicKey, privateKey, comment } = reading;
    const named = isSame(line?.publicKey, publicKey) ? line?.comment : undefined;
    return {
      publicKey,
      comment: commentText(comment === "" ? named : comment),
      privateHalf: { open: { publicKey, privateKey } },
    };
  }
  const publicKey = reading.publicKey ?? line?.publicKey;
  if (publicKey !== undefined && publicKey.type.startsWith("sk-")) {
    throw new SshProtocolError("unsupported", "only its device can sign with a security key");
  }
  const stored = fields.get("passphrase");
  const passphrase = typeof stored === "string" && stored !== "" ? new Secret(stored) : undefined;
  return {
    publicKey,
    comment: commentText(isSame(line?.publicKey, publicKey) ? line?.comment : undefined),
    privateHalf: { locked: { text: new Secret(text), passphrase } },
  };
}

export function isSame(one: PublicKey | undefined, other: PublicKey | undefined): boolean {
  return one !== undefined && other !== undefined && encodePublicKey(one).equals(encodePublicKey(other));
}

/** Comments are shown at terminals, and the writers of a shared folder choose them. */
export function commentText(comment: string | undefined): string {
  return visible(comment ?? "").slice(0, MAX_COMMENT_CHARS);
}

/** The field `public_key`. A private key that shows its public half needs none, so a faulty one is ignored. */
function publicLine(fields: Fields): { readonly publicKey: PublicKey; readonly comment: string } | undefined {
  const text = fields.get("public_key");
  if (typeof text !== "string") return undefined;
  try {
    const { blob, comment } = decodePublicKeyLine(text);
    return { publicKey: decodePublicKey(blob), comment };
  } catch (error) {
    if (error instanceof SshProtocolError) return undefined;
    throw error;
  }
}

import { createHash } from "node:crypto";

/**
 * The SHA-256 fingerprint of a public key blob, as ssh-keygen prints it. ssh-keygen shows a certificate by the
 * fingerprint of its key: pass that key's blob.
 */
export function fingerprint(blob: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(blob).digest("base64").replace(/=+$/, "")}`;
}

import { SshProtocolError, encodePublicKey, fingerprint, publicKeyOfBlob } from "@devplat/ssh-protocol";

/** Fingerprint of the key, also for a certificate. */
export function keyFingerprint(blob: Buffer): string {
  try {
    return fingerprint(encodePublicKey(publicKeyOfBlob(blob)));
  } catch (error) {
    if (error instanceof SshProtocolError) return fingerprint(blob);
    throw error;
  }
}

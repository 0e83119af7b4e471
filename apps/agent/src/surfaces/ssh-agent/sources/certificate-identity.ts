import { NO_END, fingerprint, encodePublicKey, sign, type KeyPair } from "@devplat/ssh-protocol";
import type { KeyRestrictions, SshIdentity } from "../identity.ts";
import type { IssuedCertificate } from "./certificate-authority.ts";

/** A key in memory with its certificate. */
export class CertificateIdentity implements SshIdentity {
  readonly blob: Buffer;
  readonly comment: string;
  readonly path = undefined;
  readonly restrictions: KeyRestrictions;
  readonly state = "ready";
  readonly unlockedUntil = undefined;
  readonly certificateExpiresAt: number | undefined;
  /** Fingerprint of the key. */
  readonly fingerprint: string;
  readonly #pair: KeyPair;

  constructor(
    { blob, certificate }: IssuedCertificate,
    pair: KeyPair,
    shown: { readonly comment: string; readonly restrictions: KeyRestrictions },
  ) {
    this.blob = blob;
    this.comment = shown.comment;
    this.restrictions = shown.restrictions;
    this.certificateExpiresAt =
      certificate.validBefore === NO_END ? undefined : Number(certificate.validBefore) * 1000;
    this.fingerprint = fingerprint(encodePublicKey(pair.publicKey));
    this.#pair = pair;
  }

  // oxlint-disable-next-line typescript/require-await -- other keys ask for a passphrase
  async sign(data: Buffer, rsaHash: "sha256" | "sha512" | undefined): Promise<Buffer> {
    return sign(this.#pair, data, rsaHash === "sha256" ? "rsa-sha2-256" : "rsa-sha2-512");
  }
}

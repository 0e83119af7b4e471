import { SecretStoreError, VaultRefusal, type ResponsePart, type VaultClient } from "@devplat/secret-store";
import {
  SshProtocolError,
  decodeCertificate,
  decodePublicKeyLine,
  encodePublicKey,
  encodePublicKeyLine,
  isCertificateCurrent,
  type Certificate,
  type PublicKey,
} from "@devplat/ssh-protocol";

export interface CertificateRequest {
  readonly mount: string;
  readonly role: string;
  readonly publicKey: PublicKey;
  readonly principals: readonly string[];
  /** Life of the certificate, in milliseconds. */
  readonly ttlMs: number;
  /** Undefined: the role's. */
  readonly extensions: Readonly<Record<string, string>> | undefined;
}

export interface IssuedCertificate {
  readonly blob: Buffer;
  readonly certificate: Certificate;
}

/** Parts of Vault's error texts, and the reason that they stand for. The texts themselves are never shown. */
const REASONS: readonly (readonly [text: string, reason: string])[] = [
  ["Unknown role", "the SSH engine has no such role; check the key 'role'"],
  ["valid_principals", "the role does not allow these names; check the key 'principals'"],
  ["larger than maximum allowed", "the role allows only a shorter life; lower the key 'ttl'"],
  ["not on allowed list", "the role does not allow these extensions; check the key 'extensions'"],
  ["key requirements", "the role does not allow keys of this type; check the key 'key_type'"],
];

/** Signs users' keys. */
export interface CertificateAuthority {
  /** @throws SecretStoreError, and SshProtocolError for a certificate that cannot be used */
  issue(request: CertificateRequest, signal: AbortSignal): Promise<IssuedCertificate>;
}

/** The SSH secrets engine of the store. */
export class StoreAuthority implements CertificateAuthority {
  readonly #client: Pick<VaultClient, "request">;
  readonly #now: () => number;

  /** @param now milliseconds since the epoch */
  constructor(client: Pick<VaultClient, "request">, now: () => number) {
    this.#client = client;
    this.#now = now;
  }

  async issue(request: CertificateRequest, signal: AbortSignal): Promise<IssuedCertificate> {
    const { mount, role, publicKey, principals, ttlMs, extensions } = request;
    const response = await this.#send({
      method: "POST",
      path: `${mount}/sign/${role}`,
      body: JSON.stringify({
        public_key: encodePublicKeyLine(encodePublicKey(publicKey)),
        valid_principals: principals.join(","),
        ttl: `${Math.round(ttlMs / 1000)}s`,
        cert_type: "user",
        ...(extensions !== undefined && { extensions }),
      }),
      // A second certificate for the same key does no harm.
      repeatable: true,
      signal,
    });
    const { blob } = decodePublicKeyLine(response.get("data").get("signed_key").string());
    const certificate = decodeCertificate(blob);
    const fault = this.#fault(certificate, publicKey);
    if (fault !== undefined) throw new SshProtocolError("bad_value", `the certificate of the store ${fault}`);
    return { blob, certificate };
  }

  /** @throws SecretStoreError with a reason that names the key of the configuration */
  async #send(request: Parameters<VaultClient["request"]>[0]): Promise<ResponsePart> {
    try {
      return await this.#client.request(request);
    } catch (error) {
      if (!(error instanceof VaultRefusal)) throw error;
      if (error.status === 404)
        throw refused("the store has no SSH engine there; check the key 'mount'", error);
      const reason = REASONS.find(([text]) => error.mentions(text))?.[1];
      throw reason === undefined ? error : refused(reason, error);
    }
  }

  #fault(certificate: Certificate, publicKey: PublicKey): string | undefined {
    if (certificate.kind !== "user") return "is not for a user";
    if (!encodePublicKey(certificate.publicKey).equals(encodePublicKey(publicKey)))
      return "is for another key";
    if (!isCertificateCurrent(certificate, this.#now())) {
      return "is not valid now; compare the clocks of this host and of the store";
    }
    return undefined;
  }
}

function refused(reason: string, cause: VaultRefusal): SecretStoreError {
  return new SecretStoreError("refused", reason, { cause });
}

import { generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import { Secret } from "@devplat/base";
import type { MtlsSection } from "../../config/sections/store-section.ts";
import { readCertificate, type ClientCertificate } from "./client-certificate.ts";
import { signingRequest } from "./signing-request.ts";

const generate = promisify(generateKeyPair);

/** Makes the private keys of client certificates, and removes them where they are not part of the certificate's file. */
export interface CertificateKeys {
  /** Description of the place of the keys. */
  readonly backend: string;
  /** @throws AgentError `certificate_unusable` */
  create(commonName: string): Promise<PendingKey>;
  /** The key of a certificate that is used no more. Never throws. */
  forget(certificate: ClientCertificate): Promise<void>;
}

/** A key whose certificate is yet to be issued. */
export interface PendingKey {
  /** Certificate signing request, PEM. */
  readonly request: string;
  /** @throws AgentError `certificate_unusable` */
  certificate(chain: string): ClientCertificate;
  /** It gets no certificate. Never throws. */
  discard(): Promise<void>;
}

/** Keys that this process makes. They are stored together with the certificate. */
export class SoftwareKeys implements CertificateKeys {
  readonly backend: string;
  readonly #settings: Pick<MtlsSection, "key_type" | "key_bits">;

  constructor(settings: Pick<MtlsSection, "key_type" | "key_bits">, backend: string) {
    this.#settings = settings;
    this.backend = backend;
  }

  async create(commonName: string): Promise<PendingKey> {
    const keys = await newKeys(this.#settings);
    const key = new Secret(keys.privateKey.export({ type: "pkcs8", format: "pem" }));
    return {
      request: signingRequest(commonName, keys),
      certificate: (chain) => readCertificate(chain, key, "that the store issued"),
      discard: () => Promise.resolve(),
    };
  }

  forget(): Promise<void> {
    return Promise.resolve();
  }
}

function newKeys({
  key_type,
  key_bits,
}: Pick<MtlsSection, "key_type" | "key_bits">): Promise<{ publicKey: KeyObject; privateKey: KeyObject }> {
  if (key_type === "rsa") return generate("rsa", { modulusLength: key_bits ?? 2048 });
  return generate("ec", { namedCurve: key_bits === 384 ? "P-384" : "P-256" });
}

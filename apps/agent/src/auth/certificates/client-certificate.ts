import { X509Certificate, createPrivateKey, type KeyObject } from "node:crypto";
import type { Secret } from "@devplat/base";
import { AgentError } from "../../errors.ts";

/** A private key that stays in its token: how OpenSSL finds it. */
export interface TokenKey {
  readonly label: string;
  /** Name of OpenSSL's engine. */
  readonly engine: string;
  /** PKCS#11 URI (RFC 7512) with the PIN. */
  readonly identifier: Secret;
}

/** A certificate with its private key, ready for a TLS connection. */
export interface ClientCertificate {
  /** The certificate and the intermediate certificates up to the root, PEM. */
  readonly chain: string;
  /** PEM, or where it stays. */
  readonly key: Secret | TokenKey;
  readonly publicKey: KeyObject;
  readonly serialNumber: string;
  readonly subject: string;
  /** Milliseconds since the epoch. */
  readonly notBefore: number;
  readonly notAfter: number;
}

/**
 * Reads certificate and key.
 * @param place named in errors
 * @throws AgentError `certificate_unusable` for what cannot be read, or if they do not belong together
 */
export function readCertificate(chain: string, key: Secret, place: string): ClientCertificate {
  let parsed: X509Certificate;
  let matches: boolean;
  try {
    parsed = new X509Certificate(chain);
    matches = parsed.checkPrivateKey(createPrivateKey(key.reveal()));
  } catch {
    // The library's message may quote the file.
    throw new AgentError("certificate_unusable", `the client certificate ${place} cannot be read`, {
      hint: "It must hold a certificate and a private key without a passphrase, both in PEM form.",
    });
  }
  if (!matches) {
    throw new AgentError(
      "certificate_unusable",
      `the client certificate ${place} does not belong to its key`,
    );
  }
  return described(chain, key, parsed);
}

/**
 * Reads the certificate of a key that stays in its token.
 * @throws AgentError `certificate_unusable`
 */
export function readIssued(chain: string, key: TokenKey, place: string): ClientCertificate {
  let parsed: X509Certificate;
  try {
    parsed = new X509Certificate(chain);
  } catch {
    throw new AgentError("certificate_unusable", `the client certificate ${place} cannot be read`);
  }
  return described(chain, key, parsed);
}

function described(chain: string, key: Secret | TokenKey, parsed: X509Certificate): ClientCertificate {
  return {
    chain,
    key,
    publicKey: parsed.publicKey,
    serialNumber: parsed.serialNumber,
    subject: /CN=([^\n]*)/.exec(parsed.subject)?.[1] ?? parsed.subject,
    notBefore: Date.parse(parsed.validFrom),
    notAfter: Date.parse(parsed.validTo),
  };
}

import { X509Certificate, createPrivateKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext, type SecureContext } from "node:tls";
import { systemCode } from "@devplat/base";
import { SvcError } from "../../errors.ts";

/** Files of one certificate: PEM, the chain behind the leaf. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** PEM texts. */
export interface CertificatePem {
  readonly cert: Buffer;
  readonly key: Buffer;
}

interface Identity {
  readonly pem: CertificatePem;
  readonly names: readonly string[];
  readonly context: SecureContext;
  readonly notAfter: Date;
}

/** The certificates that the listener shows, by the name that the client asks for (SNI, RFC 6066 section 3). */
export class TlsIdentities {
  readonly #subscribers: ((fallback: CertificatePem) => void)[] = [];
  #identities: readonly Identity[];

  /** @param files at least one; the first is shown to clients that name none, or another. @throws as {@link reload} */
  constructor(files: readonly CertificateFiles[]) {
    this.#identities = files.map(readIdentity);
  }

  /** Takes these in the place of the old ones, which stay if one is unusable. @throws SvcError `config_refused` naming the file */
  reload(files: readonly CertificateFiles[]): void {
    this.#identities = files.map(readIdentity);
    for (const subscriber of this.#subscribers) subscriber(this.fallback);
  }

  /** Certificate for clients that give no name: the first one. */
  get fallback(): CertificatePem {
    return this.#first.pem;
  }

  /** The function is called with the new fallback after each reload. */
  subscribe(subscriber: (fallback: CertificatePem) => void): void {
    this.#subscribers.push(subscriber);
  }

  /** The first moment at which one of the certificates is over. */
  get notAfter(): Date {
    return new Date(Math.min(...this.#identities.map(({ notAfter }) => notAfter.getTime())));
  }

  contextFor(name: string): SecureContext {
    const wanted = name.toLowerCase();
    const parent = wanted.replace(/^[^.]*/, "*");
    const found =
      this.#identities.find(({ names }) => names.includes(wanted)) ??
      this.#identities.find(({ names }) => names.includes(parent)) ??
      this.#first;
    return found.context;
  }

  get #first(): Identity {
    const [first] = this.#identities;
    if (first === undefined) throw new TypeError("made with at least one certificate");
    return first;
  }
}

function readIdentity({ certFile, keyFile }: CertificateFiles): Identity {
  const cert = read(certFile);
  const key = read(keyFile);
  // The messages of OpenSSL are left out: they say nothing to a reader, and could quote the file.
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(cert);
  } catch {
    throw refused(`${certFile} holds no PEM certificate`);
  }
  let matches: boolean;
  try {
    matches = certificate.checkPrivateKey(createPrivateKey(key));
  } catch {
    throw refused(`${keyFile} holds no PEM private key without a passphrase`);
  }
  if (!matches) throw refused(`the key in ${keyFile} does not belong to the certificate in ${certFile}`);
  const names = (certificate.subjectAltName ?? "")
    .split(", ")
    .flatMap((entry) => (entry.startsWith("DNS:") ? [entry.slice(4).toLowerCase()] : []));
  const pem = { cert, key };
  return { pem, names, context: createSecureContext(pem), notAfter: new Date(certificate.validTo) };
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw refused(`${file} cannot be read (${systemCode(error) ?? "unknown"})`, error);
  }
}

function refused(message: string, cause?: unknown): SvcError {
  return new SvcError("config_refused", `tls.certificates: ${message}`, { cause });
}

import {
  SshProtocolError,
  decodeCertificate,
  encodePublicKey,
  hostCertificateFault,
  isAboutHost,
  isCertificateType,
  isRevoked,
  keyTypeOf,
  namesOfKey,
  type Certificate,
  type KnownHost,
} from "@devplat/ssh-protocol";

/**
 * Names that known_hosts and the authorities in it give a host key. Revoked keys have none.
 *
 * @param hostKey blob of a key or certificate
 * @param candidates names that hashed lines and patterns are compared with
 */
export function namesOfHostKey(
  hostKey: Buffer,
  known: readonly KnownHost[],
  { candidates, nowMs }: { candidates: readonly string[]; nowMs: number },
): string[] {
  try {
    if (!isCertificateType(keyTypeOf(hostKey))) {
      return isRevoked(known, hostKey) ? [] : [...namesOfKey(known, hostKey, candidates)];
    }
    const certificate = decodeCertificate(hostKey);
    const plain = encodePublicKey(certificate.publicKey);
    if ([hostKey, plain, certificate.signatureKey].some((blob) => isRevoked(known, blob))) return [];
    // ssh accepts a known plain key of a host whose certificate it cannot verify.
    return [
      ...new Set([...certifiedNames(certificate, known, nowMs), ...namesOfKey(known, plain, candidates)]),
    ];
  } catch (error) {
    if (error instanceof SshProtocolError) return [];
    throw error;
  }
}

/** Principals of a host certificate for which a line of known_hosts believes its authority. */
function certifiedNames(certificate: Certificate, known: readonly KnownHost[], nowMs: number): string[] {
  const authorities = known.filter(
    ({ marker, blob }) => marker === "cert-authority" && blob.equals(certificate.signatureKey),
  );
  return certificate.principals.filter(
    (host) =>
      !/[*?!]/.test(host) &&
      authorities.some((line) => isAboutHost(line, host)) &&
      hostCertificateFault(certificate, { host, nowMs }) === undefined,
  );
}

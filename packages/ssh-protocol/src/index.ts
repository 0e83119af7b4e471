export { SSH_ERROR_CODES, SshProtocolError, type SshErrorCode } from "./errors.ts";
export { MAX_MPINT_BYTES, WireReader, WireWriter } from "./wire.ts";
export {
  MAX_RSA_BITS,
  MIN_RSA_BITS,
  decodePublicKey,
  encodePublicKey,
  keyObjectOf,
  keyTypeOf,
  publicKeyOf,
  type EcdsaKey,
  type EcdsaType,
  type Ed25519Key,
  type PublicKey,
  type RsaKey,
  type SecurityKey,
} from "./public-key.ts";
export { fingerprint } from "./fingerprint.ts";
export { decodePublicKeyLine, encodePublicKeyLine, type PublicKeyLine } from "./public-key-line.ts";
export { MAX_KDF_ROUNDS } from "./key-encryption.ts";
export type { KeyPair } from "./private-key-fields.ts";
export { encodeOpenSshKey, type CommentedKeyPair } from "./openssh-private-key.ts";
export { MAX_PRIVATE_KEY_CHARS, readPrivateKey, type PrivateKeyReading } from "./private-key.ts";
export {
  decodeSignature,
  encodeSignature,
  sign,
  verify,
  type RsaSignatureAlgorithm,
  type Signature,
  type SignatureAlgorithm,
} from "./signature.ts";
export { matchesHost, matchesPattern } from "./host-pattern.ts";
export {
  MAX_CERTIFICATE_PRINCIPALS,
  NO_END,
  decodeCertificate,
  hostCertificateFault,
  isCertificateCurrent,
  isCertificateType,
  optionText,
  publicKeyOfBlob,
  verifyCertificateSignature,
  type Certificate,
  type HostCertificateFault,
} from "./certificate.ts";
export {
  decodeSshsig,
  decodeSshsigData,
  encodeSshsig,
  encodeSshsigData,
  verifySshsig,
  type Sshsig,
  type SshsigData,
  type SshsigHash,
} from "./sshsig.ts";
export { decodeUserauthRequest, encodeUserauthRequest, type UserauthRequest } from "./userauth-request.ts";
export { describeSignedData, type SignedData } from "./signed-data.ts";
export { AgentFrameReader, MAX_AGENT_MESSAGE_BYTES, encodeAgentFrame } from "./agent/framing.ts";
export type { HopEnd, HopKey, KeyConstraint, PermittedHop } from "./agent/constraint.ts";
export type { AddedKey } from "./agent/added-key.ts";
export {
  decodeAgentRequest,
  encodeAgentRequest,
  requestedRsaAlgorithm,
  type AgentRequest,
} from "./agent/request.ts";
export {
  decodeAgentAnswer,
  encodeAgentAnswer,
  queryAnswer,
  type AgentAnswer,
  type Identity,
} from "./agent/answer.ts";
export {
  SESSION_BIND,
  decodeSessionBind,
  encodeSessionBind,
  verifySessionBind,
  type SessionBind,
} from "./agent/session-bind.ts";
export {
  decodeKnownHosts,
  decodeKnownHostsLine,
  encodeKnownHostsLine,
  hashKnownHostName,
  isAboutHost,
  isRevoked,
  knownHostName,
  knownHostsOf,
  namesOfKey,
  type KnownHost,
  type KnownHostNames,
  type KnownHostsFile,
  type KnownHostsMarker,
} from "./known-hosts.ts";

import { decodeCertificate, isCertificateType } from "../certificate.ts";
import { SshProtocolError } from "../errors.ts";
import {
  readPrivateHalf,
  readPrivateKeyFields,
  writePrivateHalf,
  writePrivateKeyFields,
} from "../private-key-fields.ts";
import type { CommentedKeyPair } from "../openssh-private-key.ts";
import { keyTypeOf } from "../public-key.ts";
import type { WireReader, WireWriter } from "../wire.ts";

/** A key that a client adds to an agent (draft-ietf-sshm-ssh-agent section 5.2). */
export interface AddedKey extends CommentedKeyPair {
  /** Blob of the certificate that was added with the key. */
  readonly certificate: Buffer | undefined;
}

/** @throws SshProtocolError */
export function readAddedKey(reader: WireReader): AddedKey {
  const type = reader.name();
  if (!isCertificateType(type)) {
    return { ...readPrivateKeyFields(type, reader), certificate: undefined, comment: reader.text() };
  }
  const certificate = reader.string();
  const { type: inner, publicKey } = decodeCertificate(certificate);
  if (inner !== type)
    throw new SshProtocolError("bad_value", "the type of a certificate differs from its key's");
  // For a key with a certificate, only Ed25519 repeats the public half.
  if (publicKey.type === "ssh-ed25519" && !reader.string().equals(publicKey.point)) {
    throw new SshProtocolError("bad_key", "the private key is not that of the certificate");
  }
  return { ...readPrivateHalf(publicKey, reader), certificate, comment: reader.text() };
}

export function writeAddedKey({ certificate, comment, ...pair }: AddedKey, writer: WireWriter): void {
  if (certificate === undefined) {
    writer.string(pair.publicKey.type);
    writePrivateKeyFields(pair, writer);
  } else {
    writer.string(keyTypeOf(certificate)).string(certificate);
    if (pair.publicKey.type === "ssh-ed25519") writer.string(pair.publicKey.point);
    writePrivateHalf(pair, writer);
  }
  writer.string(comment);
}

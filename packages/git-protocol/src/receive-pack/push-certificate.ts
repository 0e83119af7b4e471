import { ProtocolError } from "../errors.ts";
import type { ObjectFormat } from "../object-format.ts";
import { decodeRefCommand, encodeRefCommand, type RefCommand } from "./ref-command.ts";

/** A push certificate: commands that the client has signed (gitprotocol-pack, "Push Certificate"). Text is Latin-1. */
export interface PushCertificate {
  /** Name and key of the signer, as the client states them. Only the signature proves them. */
  readonly pusher: string;
  /** Address that the client pushes to. */
  readonly pushee: string | undefined;
  /** Text that the server advertised, so that an old certificate cannot be sent again. */
  readonly nonce: string | undefined;
  readonly pushOptions: readonly string[];
  readonly commands: readonly RefCommand[];
  /** The signature over all text in front of it: OpenPGP, SSH or X.509. Empty: it is not signed. */
  readonly signature: string;
}

const VERSION = "certificate version 0.1";
/** First lines of signatures (git, gpg-interface.c). */
const SIGNATURE = /^-----BEGIN (?:PGP SIGNATURE|PGP MESSAGE|SIGNED MESSAGE|SSH SIGNATURE)-----/gm;

/**
 * Decodes the text of a certificate. It does not verify the signature.
 *
 * @throws ProtocolError `bad_line`
 */
export function decodePushCertificate(certificate: Buffer): PushCertificate {
  const text = certificate.toString("latin1");
  const bodyStart = text.indexOf("\n\n") + 2;
  const [version, ...header] = text.slice(0, Math.max(0, bodyStart - 2)).split("\n");
  if (bodyStart < 2 || version !== VERSION) {
    throw new ProtocolError("bad_line", "push certificate: its header is not one of version 0.1");
  }
  // Like git: the last line that can begin a signature does begin it.
  const signatureStart = [...text.matchAll(SIGNATURE)].at(-1)?.index ?? text.length;
  const values = (key: string): string[] =>
    header.filter((line) => line.startsWith(`${key} `)).map((line) => line.slice(key.length + 1));
  const [pusher] = values("pusher");
  if (pusher === undefined) throw new ProtocolError("bad_line", "push certificate: no pusher");
  const lines = text.slice(bodyStart, Math.max(bodyStart, signatureStart)).split("\n");
  if (lines.at(-1) === "") lines.pop();
  return {
    pusher,
    pushee: values("pushee")[0],
    nonce: values("nonce")[0],
    pushOptions: values("push-option"),
    commands: lines.map(decodeRefCommand),
    signature: text.slice(signatureStart),
  };
}

/** Encodes the text of a certificate. Sign the text of one with an empty signature. */
export function encodePushCertificate(certificate: PushCertificate, format: ObjectFormat): Buffer {
  const { pusher, pushee, nonce, pushOptions, commands, signature } = certificate;
  const lines = [VERSION, `pusher ${pusher}`];
  if (pushee !== undefined) lines.push(`pushee ${pushee}`);
  if (nonce !== undefined) lines.push(`nonce ${nonce}`);
  lines.push(...pushOptions.map((option) => `push-option ${option}`), "");
  lines.push(...commands.map((command) => encodeRefCommand(command, format)));
  return Buffer.from(`${lines.join("\n")}\n${signature}`, "latin1");
}

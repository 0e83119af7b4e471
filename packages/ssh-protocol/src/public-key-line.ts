import { decodeBase64 } from "./base64.ts";
import { SshProtocolError } from "./errors.ts";
import { keyTypeOf } from "./public-key.ts";

/** A public key or certificate in one line, as in `id_ed25519.pub` (sshd(8), "AUTHORIZED_KEYS FILE FORMAT"). */
export interface PublicKeyLine {
  readonly type: string;
  readonly blob: Buffer;
  readonly comment: string;
}

const LINE = /^\s*(\S+)[ \t]+(\S+)(?:[ \t]+(\S.*?))?\s*$/;

/** Reads `type base64 comment`; a line with options before the type is refused. @throws SshProtocolError */
export function decodePublicKeyLine(line: string): PublicKeyLine {
  const [, type, base64, comment = ""] = LINE.exec(line) ?? [];
  if (type === undefined || base64 === undefined) {
    throw new SshProtocolError("bad_text", "a public key line is not a type, base64 text and a comment");
  }
  const blob = decodeBase64(base64);
  if (keyTypeOf(blob) !== type) {
    throw new SshProtocolError("bad_value", "the type of a public key line is not the type of its key");
  }
  return { type, blob, comment };
}

/** Writes the line without a line feed. */
export function encodePublicKeyLine(blob: Buffer, comment = ""): string {
  const line = `${keyTypeOf(blob)} ${blob.toString("base64")}`;
  // A line feed in a comment would begin a second line.
  return comment === "" ? line : `${line} ${comment.replaceAll(/[\r\n]+/g, " ")}`;
}

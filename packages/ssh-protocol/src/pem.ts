import { decodeBase64 } from "./base64.ts";
import { SshProtocolError } from "./errors.ts";

/** Bytes of a text between BEGIN and END lines (RFC 7468), with the label of both lines. */
export interface Pem {
  readonly label: string;
  readonly bytes: Buffer;
}

const PEM = /^-----BEGIN ([A-Z0-9 ]+)-----\r?\n([A-Za-z0-9+/=\s]*)-----END \1-----\s*$/;

/** Reads the only block of a text. @throws SshProtocolError `bad_text` */
export function decodePem(text: string): Pem {
  const [, label, content] = PEM.exec(text.trimStart()) ?? [];
  if (label === undefined || content === undefined) {
    throw new SshProtocolError("bad_text", "the text is not one block between BEGIN and END lines");
  }
  return { label, bytes: decodeBase64(content.replaceAll(/\s/g, "")) };
}

/** Writes a block with lines of at most 70 characters, as ssh-keygen does. */
export function encodePem({ label, bytes }: Pem): string {
  const lines = bytes.toString("base64").match(/.{1,70}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}

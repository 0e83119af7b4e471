import { SshProtocolError } from "./errors.ts";

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Decodes base64 strictly: Node skips characters that do not belong to it. @throws SshProtocolError `bad_text` */
export function decodeBase64(text: string): Buffer {
  const bytes = Buffer.from(text, "base64");
  if (text.length % 4 !== 0 || !BASE64.test(text) || bytes.length === 0) {
    throw new SshProtocolError("bad_text", "the base64 text is not valid");
  }
  return bytes;
}

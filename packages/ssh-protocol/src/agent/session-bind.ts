import { publicKeyOfBlob } from "../certificate.ts";
import { verify } from "../signature.ts";
import { WireReader, WireWriter } from "../wire.ts";

/** Name of the extension. */
export const SESSION_BIND = "session-bind@openssh.com";

/** Tells an agent which SSH session a connection to it serves (OpenSSH's PROTOCOL.agent section 1). */
export interface SessionBind {
  /** Blob of the server's key or certificate. */
  readonly hostKey: Buffer;
  readonly sessionId: Buffer;
  /** The server's signature of the session identifier. */
  readonly signature: Buffer;
  /** The connection is forwarded to that server. Otherwise it is for the login there. */
  readonly isForwarding: boolean;
}

/** Decodes the content of the extension; {@link verifySessionBind} checks the signature. @throws SshProtocolError */
export function decodeSessionBind(content: Buffer): SessionBind {
  const reader = new WireReader(content);
  const [hostKey, sessionId, signature] = [reader.string(), reader.string(), reader.string()];
  const isForwarding = reader.boolean();
  reader.end();
  return { hostKey, sessionId, signature, isForwarding };
}

export function encodeSessionBind({ hostKey, sessionId, signature, isForwarding }: SessionBind): Buffer {
  return new WireWriter().string(hostKey).string(sessionId).string(signature).boolean(isForwarding).bytes();
}

/** Tells whether the host key signed the session identifier. @throws SshProtocolError for a malformed key or signature */
export function verifySessionBind({ hostKey, sessionId, signature }: SessionBind): boolean {
  return verify(publicKeyOfBlob(hostKey), signature, sessionId);
}

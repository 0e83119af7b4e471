import { SshProtocolError } from "./errors.ts";
import { WireReader, WireWriter } from "./wire.ts";

/** SSH_MSG_USERAUTH_REQUEST (RFC 4252 section 6). */
const MESSAGE = 50;
const SERVICE = "ssh-connection";
const PLAIN = "publickey";
/** The method that also signs the server's host key (OpenSSH's PROTOCOL section 3.1). */
const HOST_BOUND = "publickey-hostbound-v00@openssh.com";

/** The data that a client's key signs to log in (RFC 4252 section 7). */
export interface UserauthRequest {
  readonly sessionId: Buffer;
  readonly user: string;
  /** Algorithm of the signature. */
  readonly algorithm: string;
  /** Blob of a key or certificate. */
  readonly publicKey: Buffer;
  /** Blob of the server's key or certificate. Undefined: the request is of the plain method `publickey`. */
  readonly hostKey: Buffer | undefined;
}

/** @throws SshProtocolError */
export function decodeUserauthRequest(data: Buffer): UserauthRequest {
  const reader = new WireReader(data);
  const sessionId = reader.string();
  if (reader.byte() !== MESSAGE) throw new SshProtocolError("bad_value", "the data is not a login request");
  const user = reader.text();
  if (reader.name() !== SERVICE)
    throw new SshProtocolError("bad_value", "the login request is for another service");
  const method = reader.name();
  if (method !== PLAIN && method !== HOST_BOUND) {
    throw new SshProtocolError("unsupported", "the method of the login request is not supported");
  }
  if (reader.byte() !== 1) throw new SshProtocolError("bad_value", "the login request carries no signature");
  const algorithm = reader.name();
  const publicKey = reader.string();
  const hostKey = method === HOST_BOUND ? reader.string() : undefined;
  reader.end();
  return { sessionId, user, algorithm, publicKey, hostKey };
}

export function encodeUserauthRequest(request: UserauthRequest): Buffer {
  const writer = new WireWriter()
    .string(request.sessionId)
    .byte(MESSAGE)
    .string(request.user)
    .string(SERVICE)
    .string(request.hostKey === undefined ? PLAIN : HOST_BOUND)
    .boolean(true)
    .string(request.algorithm)
    .string(request.publicKey);
  return (request.hostKey === undefined ? writer : writer.string(request.hostKey)).bytes();
}

import { SshProtocolError, decodeSessionBind, verifySessionBind } from "@devplat/ssh-protocol";

/** Maximum hosts that a connection can be forwarded through, as in OpenSSH. */
export const MAX_BOUND_SESSIONS = 16;

/** An SSH session that a connection to the SSH agent serves. Its host has proven that it has the host key. */
export interface BoundSession {
  /** Blob of the host's key or certificate. */
  readonly hostKey: Buffer;
  readonly sessionId: Buffer;
  /** The connection is forwarded to that host. Otherwise it is for the login there. */
  readonly isForwarding: boolean;
}

/** The sessions of a connection, the nearest host first. */
export interface SessionChain {
  readonly sessions: readonly BoundSession[];
  /** The client sent a session-bind that was refused: nobody knows where the connection leads. */
  readonly isBroken: boolean;
}

export const UNBOUND: SessionChain = { sessions: [], isBroken: false };

/** Result of a session-bind. */
export interface BindResult {
  readonly chain: SessionChain;
  /** Reason why it was refused. */
  readonly fault: string | undefined;
}

/** Takes up a session-bind with the rules of OpenSSH's ssh-agent. @param content of the extension */
export function bindSession(chain: SessionChain, content: Buffer): BindResult {
  const refused = (fault: string): BindResult => ({ chain: { ...chain, isBroken: true }, fault });
  let bind;
  try {
    bind = decodeSessionBind(content);
    if (!verifySessionBind(bind)) return refused("the host key has not signed the session identifier");
  } catch (error) {
    if (error instanceof SshProtocolError) return refused(error.message);
    throw error;
  }
  for (const session of chain.sessions) {
    if (!session.isForwarding) return refused("the connection is bound to a login already");
    if (!session.sessionId.equals(bind.sessionId)) continue;
    if (!session.hostKey.equals(bind.hostKey)) return refused("the session belongs to another host key");
    return { chain, fault: undefined };
  }
  if (chain.sessions.length >= MAX_BOUND_SESSIONS) return refused("the connection has too many sessions");
  // Copies: the buffers of a request are views of the whole message.
  const session = {
    hostKey: Buffer.from(bind.hostKey),
    sessionId: Buffer.from(bind.sessionId),
    isForwarding: bind.isForwarding,
  };
  return { chain: { ...chain, sessions: [...chain.sessions, session] }, fault: undefined };
}

import { visible } from "@devplat/base/terminal";
import {
  SshProtocolError,
  encodePublicKey,
  publicKeyOfBlob,
  type SignedData,
  type UserauthRequest,
} from "@devplat/ssh-protocol";
import type { KeyRestrictions } from "../identity.ts";
import { isDestination, type Account } from "./destination.ts";
import type { BoundSession } from "./session-chain.ts";

/** A bound session, and the names that known_hosts gives its host key. */
export interface NamedSession extends BoundSession {
  readonly names: readonly string[];
}

/** The account of a login that has not been requested yet. */
const ANY: Account = { kind: "any" };
/** The account that an agent is forwarded to. Its name is never known. */
const EVERY: Account = { kind: "every" };

/** Where the requests of a connection come from. */
export type Origin =
  /** A program of this host that does not log in. */
  | { readonly kind: "local" }
  /** A client that logs in and has not said where: it may be forwarded, and lead to any host. */
  | { readonly kind: "unknown" }
  /** At least one session, the nearest host first. Every session but the last one is forwarding. */
  | { readonly kind: "bound"; readonly sessions: readonly [NamedSession, ...NamedSession[]] };

/**
 * - `listed`: the key is offered.
 * - `marked`: the key is shown with its hosts in the comment. It cannot log in through this connection.
 * - `withheld`: the key is neither shown nor used.
 */
export type Listing = "listed" | "marked" | "withheld";

/** Whether requests come from another host, or may come from one. */
export function isForwarded(origin: Origin): boolean {
  if (origin.kind === "bound") return origin.sessions.some(({ isForwarding }) => isForwarding);
  return origin.kind === "unknown";
}

/** How a key appears in the list of keys for a connection. */
export function listingOf(restrictions: KeyRestrictions, origin: Origin): Listing {
  if (!isForHosts(restrictions)) return "listed";
  if (origin.kind === "local") return "marked";
  if (origin.kind === "unknown") return "withheld";
  return hasUse(restrictions, origin.sessions) ? "listed" : "withheld";
}

/**
 * The reason why a key must not sign for a connection, or undefined. The key must be listed there: see
 * {@link listingOf}.
 *
 * @param key blob of the key or certificate
 */
export function signatureFault(
  { key, restrictions }: { key: Buffer; restrictions: KeyRestrictions },
  origin: Origin,
  purpose: SignedData,
): string | undefined {
  switch (purpose.kind) {
    case "userauth":
      return loginFault({ key, restrictions }, origin, purpose.request);
    case "sshsig":
      return sshsigFault(restrictions, origin, purpose.data.namespace);
    default:
      return isForHosts(restrictions) || restrictions.namespaces !== undefined
        ? "the data is neither a login nor an SSH signature, and the key is restricted"
        : undefined;
  }
}

function loginFault(
  { key, restrictions }: { key: Buffer; restrictions: KeyRestrictions },
  origin: Origin,
  request: UserauthRequest,
): string | undefined {
  if (!isSameKey(key, request.publicKey)) return "the login request names another key";
  if (origin.kind !== "bound") {
    return isForHosts(restrictions)
      ? "the key is for certain hosts, and the client sent no session-bind"
      : undefined;
  }
  const { sessions } = origin;
  const last = sessions.at(-1) ?? sessions[0];
  if (last.isForwarding) {
    const isOwnSession = sessions.some(({ sessionId }) => sessionId.equals(request.sessionId));
    if (isOwnSession || isForHosts(restrictions))
      return "the connection is bound for forwarding, not for a login";
    // An older client on that host: it sends no session-bind of its own.
    return undefined;
  }
  if (!request.sessionId.equals(last.sessionId)) return "the login request belongs to another session";
  if (request.hostKey !== undefined && !request.hostKey.equals(last.hostKey)) {
    return "the login request names another host key";
  }
  if (!isForHosts(restrictions)) return undefined;
  if (!isAtItsHost(restrictions, sessions, ANY)) {
    return "the key is not for this host, or not through these hosts";
  }
  if (!isAtItsHost(restrictions, sessions, { kind: "named", user: request.user })) {
    return `the key is not for the user "${visible(request.user)}" of this host`;
  }
  // As in OpenSSH: only the first hop may be a server without host-bound logins.
  if (sessions.length > 1 && request.hostKey === undefined) {
    return "the login request does not name the host key, and the connection is forwarded";
  }
  return undefined;
}

function sshsigFault(restrictions: KeyRestrictions, origin: Origin, namespace: string): string | undefined {
  const { namespaces } = restrictions;
  if (namespaces !== undefined && !namespaces.includes(namespace)) {
    return "the key is not for this namespace";
  }
  if (!isForHosts(restrictions) || origin.kind === "local") return undefined;
  return origin.kind === "bound" && maySignRemotely(restrictions, origin.sessions)
    ? undefined
    : "the key is for certain hosts, and this one may not have data signed with it";
}

function isForHosts({ hosts, via }: KeyRestrictions): boolean {
  return hosts !== undefined || via !== undefined;
}

/**
 * Whether a key has a use on a connection. As in OpenSSH, a key that logs in to a host is not for those whom the connection
 * is forwarded to there.
 */
function hasUse(restrictions: KeyRestrictions, sessions: readonly NamedSession[]): boolean {
  if (sessions.at(-1)?.isForwarding !== true) return isAtItsHost(restrictions, sessions, ANY);
  return leadsFurther(restrictions, sessions) || maySignRemotely(restrictions, sessions);
}

/** Whether the sessions are the way of the key to an account of one of its hosts. */
function isAtItsHost(
  { hosts, via }: KeyRestrictions,
  sessions: readonly NamedSession[],
  account: Account,
): boolean {
  const hops = sessions.slice(0, -1);
  if (via !== undefined && (hops.length !== via.length || !isAlong(hops, via))) return false;
  return hosts === undefined || isDestination(sessions.at(-1)?.names ?? [], account, hosts);
}

/** Whether the sessions are a part of the way of the key: the host logs in to the next one. */
function leadsFurther({ via }: KeyRestrictions, sessions: readonly NamedSession[]): boolean {
  return via !== undefined && sessions.length <= via.length && isAlong(sessions, via);
}

/** Whether a host that the connection is forwarded to may have data signed. */
function maySignRemotely(restrictions: KeyRestrictions, sessions: readonly NamedSession[]): boolean {
  return restrictions.namespaces !== undefined && isAtItsHost(restrictions, sessions, EVERY);
}

function isAlong(hops: readonly NamedSession[], via: readonly string[]): boolean {
  return hops.every(({ names }, at) => isDestination(names, EVERY, [via[at] ?? ""]));
}

/** A certificate and its key are the same key. */
function isSameKey(one: Buffer, other: Buffer): boolean {
  if (one.equals(other)) return true;
  try {
    return encodePublicKey(publicKeyOfBlob(one)).equals(encodePublicKey(publicKeyOfBlob(other)));
  } catch (error) {
    if (error instanceof SshProtocolError) return false;
    throw error;
  }
}

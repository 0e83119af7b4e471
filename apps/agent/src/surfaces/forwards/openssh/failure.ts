import type { AppErrorOptions } from "@devplat/base";
import { visible } from "@devplat/base/terminal";
import { ForwardError } from "../errors/forward-error.ts";

/**
 * - `dns`: the host's name has no address.
 * - `unreachable`: no way to the host, or the connection was lost.
 * - `refused`: nobody listens on the port.
 * - `timeout`: the host does not answer.
 * - `handshake`: the server ended the connection before the login.
 * - `authentication`: the server refused the login.
 * - `host-key`: the server's key is not the pinned one, and no authority vouches for it.
 * - `socket-bind`: something is at the path of the remote socket, or somebody else's socket answers there.
 * - `socket-folder`: the folder of the remote socket is missing, belongs to another account, or takes no more files.
 * - `forwarding-denied`: the server does not forward sockets for this account.
 * - `local`: this host cannot make the connection.
 */
export const FAILURE_CLASSES = [
  "dns",
  "unreachable",
  "refused",
  "timeout",
  "handshake",
  "authentication",
  "host-key",
  "socket-bind",
  "socket-folder",
  "forwarding-denied",
  "local",
] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

export type DiskFault = "full" | "read-only";

/** Why a forward is not up. The message is safe for a terminal. */
export interface Failure {
  readonly class: FailureClass;
  readonly message: string;
  /** Another attempt soon would end in the same way. */
  readonly waitLong?: true;
  /** The server has no SFTP, so the daemon cannot see or remove a socket that was left there. */
  readonly withoutSftp?: true;
  /** Host of the remote whose forward, of this daemon, has the remote socket. */
  readonly ownForward?: string;
  /** Why the file system of the remote socket takes no file. */
  readonly disk?: DiskFault;
  /** This system can never do it. */
  readonly unsupported?: true;
}

export class ConnectionError extends ForwardError {
  readonly failure: Failure;

  constructor(failure: Failure, options: Omit<AppErrorOptions, "remedy"> = {}) {
    super("connection_failed", failure.message, { remedy: "retry", ...options });
    this.failure = failure;
  }
}

/** One line of an error message; a banner of the server may be longer. In characters. */
const MAX_MESSAGE = 300;

/** Messages of OpenSSH 8.4 to 10 and of the C library. */
const PATTERNS: readonly (readonly [FailureClass, RegExp])[] = [
  [
    "host-key",
    /^Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED|^No \S+ host key is known for/,
  ],
  ["host-key", /^(?:@.*)?Certificate invalid|^Host certificate/],
  [
    "authentication",
    /: Permission denied \([^)]*\)\.?$|Too many authentication failures|^No supported authentication/,
  ],
  ["dns", /Could not resolve host|Name or service not known|Temporary failure in name resolution/],
  ["dns", /nodename nor servname provided|No address associated with hostname/],
  ["refused", /Connection refused/],
  [
    "unreachable",
    /No route to host|Network is (?:unreachable|down)|Host is (?:unreachable|down)|Broken pipe/,
  ],
  ["unreachable", /^Connection to \S+ closed by remote host/],
  ["timeout", /timed out|^Timeout, server /i],
  ["forwarding-denied", /open failed: administratively prohibited/],
  [
    "local",
    /Bad configuration option|^command-line: |terminating, \d+ bad configuration|Bad owner or permissions/,
  ],
  [
    "local",
    /Too many open files|Cannot allocate memory|: command not found|: not found$|ControlPath too long/,
  ],
  [
    "handshake",
    /^(?:kex_exchange|ssh_exchange|banner exchange|Connection (?:closed|reset) by|Received disconnect)/,
  ],
  [
    "handshake",
    /no matching .* found|Protocol major versions differ|Bad packet length|message authentication code/,
  ],
];
/** Classes of the message of the last ssh of a chain after a hop has failed. */
const CONSEQUENCES: ReadonlySet<FailureClass> = new Set(["handshake", "unreachable"]);

/**
 * Finds the reason in what ssh printed. The last line with a reason counts: a banner comes before it. What a chain of jump
 * hosts prints last is a consequence of the hop that failed before.
 *
 * @param otherwise the class of output without a reason
 */
export function failureOf(stderr: string, otherwise: FailureClass): Failure {
  const lines = stderr.split(/[\r\n]+/).filter((line) => line.trim() !== "");
  const found = lines.toReversed().flatMap((line) => {
    const match = PATTERNS.find(([, pattern]) => pattern.test(line));
    return match === undefined ? [] : [{ class: match[0], message: messageLine(line) }];
  });
  const cause = found.find((each) => !CONSEQUENCES.has(each.class)) ?? found[0];
  return cause ?? { class: otherwise, message: messageLine(lines.at(-1) ?? "ssh ended without a message") };
}

/** A line of ssh or of the server, safe for a terminal. */
export function messageLine(line: string): string {
  const shown = visible(line.trim());
  return shown.length > MAX_MESSAGE ? `${shown.slice(0, MAX_MESSAGE)}…` : shown;
}

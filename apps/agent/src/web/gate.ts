import type { IncomingMessage } from "node:http";
import { isLoopbackHost, isOwnOrigin, readCookie, targetFault } from "@devplat/web-kit";
import { PROBLEMS, type Problem } from "../api/problem.ts";
import type { PortGuard } from "./port-guard.ts";
import type { Sessions } from "./sessions.ts";
import type { WebKey } from "./web-key.ts";

/** Any user of the host, a load balancer or a supervisor may ask these; they say nothing about the user. */
const OPEN_PATHS: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);

export interface GateOptions {
  readonly guard: PortGuard;
  readonly sessions: Sessions;
  readonly webKey: WebKey;
  /** Whether the owner of a connection decides: where the system cannot tell, it decides nothing. */
  readonly ownersVisible: boolean;
  /** Whether a session cookie or the web key is needed as well. */
  readonly unlockRequired: boolean;
  readonly cookieName: string;
}

/** Who may come in. The checks that need no route run before routing; a route asks for the others by name. */
export class Gate {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** Why a request gets no further, or undefined. */
  async refusal(request: IncomingMessage): Promise<Problem | undefined> {
    const fault = requestFault(request);
    if (fault !== undefined) return fault;
    if (!this.#options.ownersVisible || OPEN_PATHS.has(pathOf(request))) return undefined;
    const owner = await this.#options.guard.ownerOf(request.socket);
    if (owner === "own") return undefined;
    return owner === "other" ? PROBLEMS.otherUser : PROBLEMS.ownerUnknown;
  }

  /** Whether the request carries what `web.require_unlock` asks for. */
  isUnlocked(request: IncomingMessage): boolean {
    if (!this.#options.unlockRequired) return true;
    return this.session(request) !== undefined || this.#options.webKey.opens(request.headers.authorization);
  }

  /** The open session whose cookie the request carries. */
  session(request: IncomingMessage): string | undefined {
    const session = readCookie(request.headers.cookie, this.#options.cookieName);
    return this.#options.sessions.isOpen(session) ? session : undefined;
  }
}

/** What is wrong with a request on any surface: its target, or the host that it is meant for. */
export function requestFault(request: IncomingMessage): Problem | undefined {
  const fault = targetFault(request.url ?? "");
  if (fault !== undefined) return { error: `The request was refused: ${fault}.`, code: "bad_request" };
  // RFC 9112 section 3.2; Node's own refusal would go out without our headers.
  if (request.headers.host === undefined)
    return { error: "The request was refused: it has no Host.", code: "bad_request" };
  // A foreign name that resolves to loopback (DNS rebinding) would make a foreign page same-origin with us.
  return isLoopbackHost(request.headers.host) ? undefined : PROBLEMS.hostRefused;
}

/** The path of a request without its query. */
export function pathOf(request: IncomingMessage): string {
  return (request.url ?? "").split("?", 1)[0] ?? "";
}

/** Whether a form of one of our own pages was posted: its Origin is present, and scheme, host and port are those of the Host. */
export function isFromOwnPage(request: IncomingMessage): boolean {
  return isOwnOrigin(request.headers.origin, [`http://${(request.headers.host ?? "").toLowerCase()}`]);
}

/**
 * Whether a browser says that another site's page asks. Answers could not be read there, but a stream or a CSRF token
 * takes the place of one of ours. Another port of this host is same-site, so `same-site` is foreign too.
 */
export function isFromForeignPage(request: IncomingMessage): boolean {
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") return true;
  return request.headers.origin !== undefined && !isFromOwnPage(request);
}

import type { IncomingMessage } from "node:http";
import { readCookie } from "@devplat/web-kit";
import type { AccessCheck } from "../../http-api/environment.ts";
import { PROBLEMS, type Problem } from "../../http-api/problems/problem.ts";
import { pathOf, requestFault } from "../../http-api/request-checks.ts";
import type { PortGuard } from "./port-guard.ts";
import type { Sessions } from "./sessions.ts";
import type { WebKey } from "./web-key.ts";

/** Any user of the host, a load balancer or a supervisor may ask these; they say nothing about the user. */
const OPEN_PATHS: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);

export interface WebAccessParts {
  readonly guard: PortGuard;
  readonly sessions: Sessions;
  readonly webKey: WebKey;
  /** Whether the owner of a connection decides. False if the system does not show owners. */
  readonly ownersVisible: boolean;
  /** Whether a session cookie or the web key is needed as well. */
  readonly unlockRequired: boolean;
  readonly cookieName: string;
}

/** Decides about requests to the web port. `refusal` runs before routing. Each route calls the other checks that it needs. */
export class WebAccessCheck implements AccessCheck {
  readonly #options: WebAccessParts;

  constructor(options: WebAccessParts) {
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

  /** Whether the request has the session or key that `web.require_unlock` requires. */
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

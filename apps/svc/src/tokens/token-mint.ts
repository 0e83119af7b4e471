import { randomUUIDv7 } from "node:crypto";
import { formatDuration, parseDuration, type Clock, type Secret } from "@devplat/base";
import { FieldError, SvcError, type FieldFault } from "../errors.ts";
import type { Identity } from "../login/sessions.ts";
import { splitRepository } from "../repository-name.ts";
import type { Store, TokenRecord } from "../storage/store.ts";
import { addressFault } from "./address-list.ts";
import { createToken, isWellFormed, tokenHash, tokenStart } from "./format.ts";
import type { RepositoryProbe } from "./repository-probe.ts";
import { EVERYTHING, parseScopes } from "./scopes.ts";
import type { TokenLookup } from "./token-lookup.ts";

/** Shortest life of a token, in milliseconds (spec/svc.md section 4). */
const MIN_DURATION_MS = 60_000;
/** Numbers with the units s, m, h, d, w; compound allowed. */
const DURATION_FORM = /^(?:\d+(?:\.\d+)?[smhdw])+$/;

/** The fields of `POST /api/tokens`, of the right types, not yet judged. */
export interface TokenRequest {
  readonly repository?: string | undefined;
  readonly repositories?: readonly string[] | undefined;
  readonly scopes: string;
  readonly duration: string;
  readonly type: "proxy" | "agent";
  readonly session_id?: string | undefined;
  readonly description?: string | undefined;
  readonly ip_allow: readonly string[];
}

export interface TokenMintOptions {
  readonly store: Store;
  readonly lookup: TokenLookup;
  readonly probe: RepositoryProbe;
  readonly clock: Clock;
  /** Longest life, in milliseconds. */
  readonly maxDurationMs: number;
  /** Whether `*` is allowed for repositories and scopes. */
  readonly allowUnrestricted: boolean;
}

/** Issues, lists and revokes proxy tokens. */
export class TokenMint {
  readonly #options: TokenMintOptions;

  constructor(options: TokenMintOptions) {
    this.#options = options;
  }

  /**
   * Issues a token; its value is in the answer, and nowhere else.
   *
   * @param check whether to ask the code host if the caller can reach the repositories
   * @throws SvcError `invalid_fields`, `forbidden` and `no_app` (agent tokens), `host_unreachable`
   */
  async mint(
    caller: Identity,
    request: TokenRequest,
    check: boolean,
  ): Promise<{ token: Secret; record: TokenRecord }> {
    if (request.type === "agent") throw agentRefusal(caller);
    const repositories =
      request.repositories ?? (request.repository === undefined ? [] : [request.repository]);
    const { scopes, faults } = parseScopes(request.scopes);
    const duration = this.#duration(request.duration);
    const found: FieldFault[] = [
      ...this.#repositoryFaults(request, repositories),
      ...faults.map((message) => ({ pointer: "/scopes", message })),
      ...(EVERYTHING in scopes && !this.#options.allowUnrestricted
        ? [{ pointer: "/scopes", message: NOT_UNRESTRICTED }]
        : []),
      ...(typeof duration === "string" ? [{ pointer: "/duration", message: duration }] : []),
      ...request.ip_allow.flatMap((entry, index) => {
        const message = addressFault(entry);
        return message === undefined ? [] : [{ pointer: `/ip_allow/${index}`, message }];
      }),
    ];
    if (found.length > 0 || typeof duration === "string") throw new FieldError(found);
    if (check) await this.#requireReachable(caller, request, repositories);
    const token = createToken("proxy");
    const now = this.#options.clock.now();
    const record: TokenRecord = {
      id: randomUUIDv7(),
      type: "proxy",
      tokenHash: tokenHash(token.reveal()),
      tokenStart: tokenStart(token),
      userId: caller.userId,
      repositories: [...new Set(repositories)],
      scopes,
      description: request.description,
      sessionId: request.session_id,
      appId: undefined,
      installation: undefined,
      ipAllow: request.ip_allow,
      createdAt: now,
      expiresAt: now + duration,
      revokedAt: undefined,
      lastUsedAt: undefined,
      lastIp: undefined,
      useCount: 0,
    };
    await this.#options.store.tokens.insert(record);
    return { token, record };
  }

  /** The caller's tokens; all of them for an admin. Newest first, without revoked ones. */
  async list(caller: Identity): Promise<readonly TokenRecord[]> {
    return this.#options.store.tokens.list(caller.role === "admin" ? undefined : caller.userId);
  }

  /** @throws SvcError `not_found`, also for a token of another user */
  async get(caller: Identity, id: string): Promise<TokenRecord> {
    const record = await this.#options.store.tokens.get(id);
    const visible = record !== undefined && (caller.role === "admin" || record.userId === caller.userId);
    if (!visible || record.revokedAt !== undefined) throw new SvcError("not_found", "No token has this id");
    return record;
  }

  /** From here on the token opens nothing. @throws SvcError `not_found` */
  async revoke(caller: Identity, id: string): Promise<void> {
    const record = await this.get(caller, id);
    await this.#revoke(record);
  }

  /**
   * Revokes by value, for whoever found a leaked token: having it is the right to end it.
   *
   * @throws SvcError `not_found`
   */
  async revokeByValue(text: string): Promise<void> {
    const known = isWellFormed(text)
      ? await this.#options.store.tokens.findByHash(tokenHash(text))
      : undefined;
    if (known === undefined) throw new SvcError("not_found", "No token has this value");
    await this.#revoke(known);
  }

  async #revoke(record: TokenRecord): Promise<void> {
    await this.#options.store.tokens.revoke(record.id, this.#options.clock.now());
    this.#options.lookup.forget({ tokenId: record.id });
  }

  #duration(text: string): number | string {
    const { maxDurationMs } = this.#options;
    const ms = DURATION_FORM.test(text) ? parseDuration(text) : undefined;
    if (ms === undefined) return "expected a number with a unit s, m, h, d or w, such as 30m, 12h or 1h30m";
    if (ms < MIN_DURATION_MS) return `must be at least ${formatDuration(MIN_DURATION_MS)}`;
    if (ms > maxDurationMs) return `must be at most ${formatDuration(maxDurationMs)}`;
    return ms;
  }

  #repositoryFaults(request: TokenRequest, repositories: readonly string[]): FieldFault[] {
    if (request.repository !== undefined && request.repositories !== undefined) {
      return [{ pointer: "/repositories", message: "give repository or repositories, not both" }];
    }
    if (repositories.length === 0) return [{ pointer: "/repository", message: "required, but missing" }];
    return repositories.flatMap((text, index) => {
      const pointer = repositoryPointer(request, index);
      if (text === EVERYTHING) {
        return this.#options.allowUnrestricted ? [] : [{ pointer, message: NOT_UNRESTRICTED }];
      }
      const parts = splitRepository(text);
      return typeof parts === "string" ? [{ pointer, message: parts }] : [];
    });
  }

  async #requireReachable(
    caller: Identity,
    request: TokenRequest,
    repositories: readonly string[],
  ): Promise<void> {
    const credential = await this.#options.store.users.credential(caller.userId);
    const faults: FieldFault[] = [];
    for (const [index, text] of repositories.entries()) {
      const parts = splitRepository(text);
      if (typeof parts === "string") continue;
      const answer = await this.#options.probe.ask(parts.owner, parts.name, credential?.accessToken);
      if (answer === "readable") continue;
      faults.push({
        pointer: repositoryPointer(request, index),
        message:
          answer === "moved"
            ? "has moved at the code host: use its present name"
            : credential === undefined
              ? "is not readable at the code host without a credential, and none is stored for you"
              : "is not readable at the code host with your stored credential",
      });
    }
    if (faults.length > 0) throw new FieldError(faults);
  }
}

const NOT_UNRESTRICTED = "* is not allowed here (tokens.allow_unrestricted is false)";

function repositoryPointer(request: TokenRequest, index: number): string {
  return request.repositories === undefined ? "/repository" : `/repositories/${index}`;
}

function agentRefusal(caller: Identity): SvcError {
  if (caller.role !== "admin") return new SvcError("forbidden", "Only an admin may create agent tokens");
  return new SvcError("no_app", "Agent tokens need a registered code-host app, and none is registered", {
    hint: "This version cannot register apps yet; use a proxy token.",
  });
}

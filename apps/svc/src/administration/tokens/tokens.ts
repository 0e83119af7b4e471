import type { Actor, Identity } from "../../identity/principal.ts";
import { randomUUIDv7 } from "node:crypto";
import type { Clock, Secret } from "@devplat/base";
import type { HostAccounts } from "../../code-host/host-account.ts";
import type { InstallationCredentials } from "../../identity/apps/installation-credentials.ts";
import { actionEvent } from "../../identity/audit-source.ts";
import type { AuditTrail } from "../../audit/audit-event.ts";
import { FieldError, SvcError, type FieldFault } from "../../errors.ts";
import { foldCase, splitRepository } from "../../repository-name.ts";
import type { AppRecord, Store, TokenPage, TokenRecord } from "../../storage/store.ts";
import { addressFault } from "@devplat/config/address-list";
import { lifetimeOf } from "../../tokens/duration.ts";
import { createToken, isWellFormed, tokenHash, tokenStart } from "../../credentials/token-format.ts";
import type { RepositoryProbe } from "../repositories/repository-probe.ts";
import { EVERYTHING, parseScopes, scopeTexts } from "../../scopes/scopes.ts";
import type { TokenLookup } from "../../tokens/token-lookup.ts";
import { requireTimeCursor } from "../paging.ts";
import { requireRunningSession } from "./running-session.ts";
import { tokenRequestSchema, type TokenRequest } from "./token-input.ts";
import { validateBody } from "../../http/request/validation.ts";

/** The duration of a token without expiry. */
const NEVER = "never";
/** Tokens of a page, where no limit is given. */
export const MAX_LISTED = 1000;
export interface TokensParts {
  readonly store: Store;
  readonly lookup: TokenLookup;
  readonly probe: RepositoryProbe;
  readonly accounts: Pick<HostAccounts, "accessToken">;
  /** Whether the code host has apps, which agent tokens need. */
  readonly knowsApps: boolean;
  /** Undefined: agent tokens are not checked with the code host when they are issued. */
  readonly installations: InstallationCredentials | undefined;
  readonly audit: AuditTrail;
  readonly clock: Clock;
  /** Longest life, in milliseconds. */
  readonly maxDurationMs: number;
  /** Whether `*` is allowed for repositories and scopes. */
  readonly allowUnrestricted: boolean;
  /** Whether a token may be without expiry (`never`). */
  readonly allowNever: boolean;
}

/** Issues, lists and revokes proxy and agent tokens. */
export class Tokens {
  readonly #parts: TokensParts;

  constructor(parts: TokensParts) {
    this.#parts = parts;
  }

  /**
   * Issues a token. Its value is in the result, and nowhere else.
   *
   * @param check whether to ask the code host if the actor, or the app, can reach the repositories
   * @throws SvcError `invalid_fields`, `forbidden` and `no_app` (agent tokens), `host_unreachable`; ProblemError
   */
  async create(
    actor: Actor,
    input: unknown,
    check: boolean,
  ): Promise<{ token: Secret; record: TokenRecord }> {
    const request = validateBody(tokenRequestSchema, input);
    const { type = "proxy", ip_allow: ipAllow = [] } = request;
    if (type === "agent" && actor.role !== "admin") {
      throw new SvcError("forbidden", "Only an admin may create agent tokens");
    }
    const { store, installations, audit, clock } = this.#parts;
    if (type === "agent" && !this.#parts.knowsApps) {
      throw new SvcError("no_app", "This code host knows no apps (host.kind), so it has no agent tokens");
    }
    const apps = type === "agent" ? await store.apps.list() : [];
    if (type === "agent" && apps.length === 0) throw noApp();
    const repositories =
      request.repositories ?? (request.repository === undefined ? [] : [request.repository]);
    const { scopes, faults } = parseScopes(request.scopes);
    const duration = this.#duration(request.duration);
    const agent = type === "agent" ? agentPart(request, repositories, apps) : undefined;
    const found: FieldFault[] = [
      ...this.#repositoryFaults(request, repositories),
      ...faults.map((message) => ({ pointer: "/scopes", message })),
      ...(EVERYTHING in scopes && !this.#parts.allowUnrestricted
        ? [{ pointer: "/scopes", message: NOT_UNRESTRICTED }]
        : []),
      ...(typeof duration === "string" ? [{ pointer: "/duration", message: duration }] : []),
      ...ipAllow.flatMap((entry, index) => {
        const message = addressFault(entry);
        return message === undefined ? [] : [{ pointer: `/ip_allow/${index}`, message }];
      }),
      ...(agent?.faults ?? []),
    ];
    if (found.length > 0 || typeof duration === "string") throw new FieldError(found);
    if (check && agent === undefined) await this.#requireReachable(actor, request, repositories);
    const token = createToken(type);
    const now = clock.now();
    const record: TokenRecord = {
      id: randomUUIDv7(),
      type,
      tokenHash: tokenHash(token.reveal()),
      tokenStart: tokenStart(token),
      userId: actor.userId,
      repositories: [...new Set(repositories)],
      scopes,
      description: request.description,
      sessionId: request.session_id,
      appId: agent?.appId,
      installation: agent?.installation,
      ipAllow,
      requestsPerMinute: request.requests_per_minute,
      mintedBy: actor.sessionId,
      createdAt: now,
      expiresAt: duration === Infinity ? undefined : now + duration,
      revokedAt: undefined,
      lastUsedAt: undefined,
      lastIp: undefined,
      useCount: 0,
    };
    if (check && agent !== undefined && installations !== undefined) {
      await requireInstalled(installations, record);
    }
    await store.tokens.insert(record);
    await requireRunningSession(store.sessions, actor, async () =>
      store.tokens.revoke(record.id, clock.now()),
    );
    const details = {
      type,
      repositories: record.repositories.join(","),
      scopes: scopeTexts(scopes).join(","),
      expires_at: record.expiresAt === undefined ? "never" : new Date(record.expiresAt).toISOString(),
    };
    audit.record(actionEvent(actor, "token.created", record.id, details));
    return { token, record };
  }

  /** The caller's tokens, and for an admin all tokens, unless `mine` is set. Newest first, without revoked ones. */
  async list(
    caller: Identity,
    query: { readonly limit?: number; readonly cursor?: string | undefined; readonly mine?: boolean } = {},
  ): Promise<TokenPage> {
    const { limit = MAX_LISTED, cursor, mine = false } = query;
    requireTimeCursor(cursor);
    const userId = caller.role === "admin" && !mine ? undefined : caller.userId;
    return this.#parts.store.tokens.list({ userId, limit, cursor });
  }

  /** Logins of the users who made the tokens, by user id. */
  async loginsOf(
    caller: Identity,
    records: readonly Pick<TokenRecord, "userId">[],
  ): Promise<ReadonlyMap<string, string>> {
    const own = new Map([[caller.userId, caller.login]]);
    if (records.every(({ userId }) => own.has(userId))) return own;
    return new Map((await this.#parts.store.users.list()).map(({ id, login }) => [id, login]));
  }

  /** Number of valid tokens that were made with each session. Sessions without any are left out. */
  async countMintedBy(sessionIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.#parts.store.tokens.countMintedBy(sessionIds, this.#parts.clock.now());
  }

  /** @throws SvcError `not_found`, also for a token of another user */
  async get(caller: Identity, id: string): Promise<TokenRecord> {
    const record = await this.#parts.store.tokens.get(id);
    const visible = record !== undefined && (caller.role === "admin" || record.userId === caller.userId);
    if (!visible || record.revokedAt !== undefined) throw new SvcError("not_found", "No token has this id");
    return record;
  }

  /** Revokes a token immediately. @throws SvcError `not_found` */
  async revoke(actor: Actor, id: string): Promise<void> {
    await this.#revoke(await this.get(actor, id), actor);
  }

  /**
   * Revokes a leaked token by its value, for anybody who has it. Doing so twice is not an error.
   *
   * @throws SvcError `not_found`: never issued
   */
  async revokeByValue(actor: Actor, text: string): Promise<void> {
    const known = isWellFormed(text) ? await this.#parts.store.tokens.findByHash(tokenHash(text)) : undefined;
    if (known === undefined) throw new SvcError("not_found", "No token has this value");
    await this.#revoke(known, actor);
  }

  /**
   * Revokes every valid token that was made with the session or administration token.
   *
   * @returns how many
   */
  async revokeMintedBy(actor: Actor, sessionId: string): Promise<number> {
    const { store, clock } = this.#parts;
    let revoked = 0;
    let cursor: string | undefined;
    do {
      const page = await store.tokens.list({ mintedBy: sessionId, limit: MAX_LISTED, cursor });
      const now = clock.now();
      for (const record of page.records.filter(({ expiresAt = Infinity }) => expiresAt > now)) {
        await this.#revoke(record, actor);
        revoked++;
      }
      cursor = page.next;
    } while (cursor !== undefined);
    return revoked;
  }

  async #revoke(record: TokenRecord, actor: Actor): Promise<void> {
    const { store, lookup, installations, audit, clock } = this.#parts;
    const ended = await store.tokens.revoke(record.id, clock.now());
    lookup.forget(record.id);
    if (record.type === "agent") await installations?.revokeFor(record.id);
    // Only one of two concurrent revocations is recorded.
    if (ended) audit.record(actionEvent(actor, "token.revoked", record.id, { type: record.type }));
  }

  #duration(text: string): number | string {
    const { maxDurationMs, allowNever } = this.#parts;
    if (text === NEVER)
      return allowNever ? Infinity : "never is not allowed here (tokens.allow_never is false)";
    return lifetimeOf(text, maxDurationMs);
  }

  #repositoryFaults(request: TokenRequest, repositories: readonly string[]): FieldFault[] {
    if (request.repository !== undefined && request.repositories !== undefined) {
      return [{ pointer: "/repositories", message: "give repository or repositories, not both" }];
    }
    if (repositories.length === 0) return [{ pointer: "/repository", message: "required, but missing" }];
    return repositories.flatMap((text, index) => {
      const pointer = repositoryPointer(request, index);
      if (text === EVERYTHING) {
        return this.#parts.allowUnrestricted ? [] : [{ pointer, message: NOT_UNRESTRICTED }];
      }
      const parts = splitRepository(text);
      return typeof parts === "string" ? [{ pointer, message: parts }] : [];
    });
  }

  async #requireReachable(
    { userId }: Identity,
    request: TokenRequest,
    repositories: readonly string[],
  ): Promise<void> {
    const credential = await this.#parts.accounts.accessToken(userId);
    const faults: FieldFault[] = [];
    for (const [index, text] of repositories.entries()) {
      const parts = splitRepository(text);
      if (typeof parts === "string") continue;
      const response = await this.#parts.probe.ask(parts.owner, parts.name, credential);
      if (response === "readable") continue;
      faults.push({
        pointer: repositoryPointer(request, index),
        message:
          response === "moved"
            ? "has moved at the code host: use its present name"
            : credential === undefined
              ? "is not readable at the code host without a credential, and none is stored for you: sign in with your account there"
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

function noApp(): SvcError {
  return new SvcError("no_app", "Agent tokens need a registered code-host app, and none is registered", {
    hint: "Register one with POST /api/apps or in the admin UI, or set SVC_HOST_APP_ID and SVC_HOST_PRIVATE_KEY.",
  });
}

/** Additional fields of an agent token: the app and the account of the installation that gives its credential. */
function agentPart(
  request: TokenRequest,
  repositories: readonly string[],
  apps: readonly AppRecord[],
): {
  readonly appId: string | undefined;
  readonly installation: string | undefined;
  readonly faults: FieldFault[];
} {
  const { app_id: asked } = request;
  const faults: FieldFault[] = [];
  const app =
    asked === undefined
      ? (apps.find(({ isDefault }) => isDefault) ?? (apps.length === 1 ? apps[0] : undefined))
      : apps.find(({ id, appId }) => id === asked || appId === asked);
  if (app === undefined) {
    const message = asked === undefined ? "no app is the default: name one" : "no such app is registered";
    faults.push({ pointer: "/app_id", message });
  }
  // An installation is for one account: its token does not open repositories of another.
  const owners = new Set(repositories.map((each) => foldCase(each.split("/", 1)[0] ?? "")));
  if (owners.size > 1) {
    faults.push({
      pointer: "/repositories",
      message: "must belong to one owner: an app is installed for one account",
    });
  }
  if (repositories.includes(EVERYTHING) && request.installation === undefined) {
    faults.push({ pointer: "/installation", message: "required with *: name the account" });
  }
  const installation = request.installation ?? repositories[0]?.split("/", 1)[0];
  return { appId: app?.id, installation, faults };
}

async function requireInstalled(installations: InstallationCredentials, record: TokenRecord): Promise<void> {
  const outcome = await installations.forToken(record);
  if (outcome.kind === "refused") {
    throw new FieldError([{ pointer: "/installation", message: outcome.message }]);
  }
  if (outcome.kind === "unavailable") {
    throw new SvcError("host_unreachable", outcome.message, {
      remedy: "retry",
      hint: "Try again, or leave the check out (--no-check; ?check=false in the API).",
    });
  }
}

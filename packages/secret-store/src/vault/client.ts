import { retry, systemClock, type BackoffOptions, type Clock, type Secret } from "@devplat/base";
import { SecretStoreError, unavailable } from "../errors.ts";
import { parseAddress, type VaultAddress } from "./address.ts";
import { ForeignResponse, readLeader, readRefusal, readSuccess } from "./vault-response.ts";
import { VaultRefusal } from "./refusal.ts";
import { ResponsePart } from "./response.ts";
import { readTokenInfo, type TokenInfo } from "./token-info.ts";
import { Transport, TransportError, type TransportOptions, type TransportResponse } from "./transport.ts";

/** Time limit of one try, from connecting to the last byte, in milliseconds. */
const TRY_TIMEOUT_MS = 10_000;
/** Time limit of a call with its retries, in milliseconds, so that a page does not keep its user waiting. */
const CALL_TIMEOUT_MS = 30_000;
/** Maximum tries of a call. */
const ATTEMPTS = 4;

export interface VaultClientOptions extends TransportOptions {
  /** Address `https://host:port`, optionally with a path prefix. */
  readonly address: string;
  /** `X-Vault-Namespace` (Vault Enterprise, OpenBao). */
  readonly namespace?: string;
  /** Returns the current token. It is called for each request. Undefined: there is no token. */
  readonly token: () => Secret | undefined;
  readonly clock?: Clock;
  /** Time limits for tests. Defaults: 10 s for a try, 30 s for a call, 200 ms before the second try. */
  readonly timing?: BackoffOptions & { readonly tryMs?: number; readonly callMs?: number };
}

export interface VaultRequest {
  /** Method. `LIST` is sent as GET with `list=true`. */
  readonly method: "GET" | "LIST" | "POST" | "PUT" | "DELETE";
  /** Path below `/v1/`: unencoded segments joined by `/`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Body as JSON text. */
  readonly body?: string;
  /** Token instead of the client's own. Null sends none, for a login. */
  readonly token?: Secret | null;
  /**
   * Whether to send the request again after a fault that does not show whether it was carried out. Default: only GET and
   * LIST.
   */
  readonly repeatable?: boolean;
  /** Whether a response without a body is valid. Default: only for DELETE. */
  readonly mayBeEmpty?: boolean;
  /** Time limit in milliseconds for a request that waits for a person (push approval). Default: 10 s for a try, 30 s for a call. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Client for the HTTP API of HashiCorp Vault and OpenBao: time limits, retries (connection faults, 429, 5xx), redirects to
 * the cluster's leader, typed errors. It accepts only Vault's own responses. Any other is a {@link ForeignResponse}.
 *
 * Every call throws {@link SecretStoreError}: `unauthenticated`, `denied`, `not_found`, `refused`, `misconfigured`,
 * `sealed`, `unavailable`, `aborted`, `invalid_response`. Refusals are {@link VaultRefusal}.
 */
export class VaultClient {
  readonly #options: VaultClientOptions;
  readonly #address: VaultAddress;
  readonly #transport: Transport;
  /** Target of the last redirect by the configured server, after its check. */
  #leader: VaultAddress | undefined;

  /** @throws SecretStoreError `misconfigured` */
  constructor(options: VaultClientOptions) {
    this.#options = options;
    this.#address = parseAddress(options.address);
    this.#transport = new Transport(options);
  }

  /** Sends a request. Returns the body of the response, which may be absent. */
  async request(request: VaultRequest): Promise<ResponsePart> {
    const token = tokenOf(request.token === undefined ? this.#options.token() : request.token);
    const repeatable = request.repeatable ?? isRead(request);
    const { clock = systemClock, timing = {} } = this.#options;
    const deadline = AbortSignal.timeout(request.timeoutMs ?? timing.callMs ?? CALL_TIMEOUT_MS);
    const signal = request.signal === undefined ? deadline : AbortSignal.any([request.signal, deadline]);
    let uncertain = false;
    try {
      return await retry(
        async () => {
          try {
            return await this.#try(request, token, signal, uncertain);
          } catch (error) {
            if (mayHaveHappened(error)) uncertain = true;
            throw error;
          }
        },
        {
          ...timing,
          attempts: ATTEMPTS,
          signal,
          clock,
          retryable: (error) => isPassing(error) && (repeatable || !mayHaveHappened(error)),
        },
      );
    } catch (error) {
      if (request.signal?.aborted === true) {
        throw new SecretStoreError("aborted", `${nameOf(request)}: the caller aborted it`, { cause: error });
      }
      if (error instanceof SecretStoreError) throw error;
      if (deadline.aborted) throw unavailable(`${nameOf(request)}: no answer in time`, { cause: error });
      throw error;
    }
  }

  /**
   * Reads the JSON messages of a WebSocket until the signal fires. It uses one connection and does not retry.
   * @param opened called when the connection is open
   * @throws SecretStoreError `unsupported` if the server has no such stream, `unavailable` if the stream ends
   */
  async *subscribe(
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
    opened: () => void,
  ): AsyncGenerator<ResponsePart> {
    const request = { method: "GET", path, query } as const;
    const token = tokenOf(this.#options.token());
    const { url, headers } = this.#prepare(this.#leader ?? this.#address, request, token);
    let isOpen = false;
    const open = (): void => {
      isOpen = true;
      opened();
    };
    // First a request without an upgrade, so that the WebSocket client is loaded only if the stream exists.
    const refusal = await this.#refusalReason(request, token, signal);
    if (refusal.code !== "unavailable") throw refusal;
    try {
      for await (const text of this.#transport.messages(url, headers, signal, open)) {
        yield ResponsePart.parse(text, path);
      }
    } catch (error) {
      if (error instanceof SecretStoreError) throw error;
      if (isOpen) throw unavailable(`${path}: the event stream ended`, { cause: error });
      throw await this.#refusalReason(request, token, signal);
    }
  }

  /** Finds the reason of a refused WebSocket, by the same request without an upgrade. */
  async #refusalReason(
    request: VaultRequest,
    token: string | undefined,
    signal: AbortSignal,
  ): Promise<SecretStoreError> {
    try {
      await this.#try(request, token, signal, false);
    } catch (error) {
      // Vault itself refuses a request without an upgrade with a line of text.
      if (error instanceof ForeignResponse) return error;
      if (!(error instanceof VaultRefusal)) throw error;
      if (WITHOUT_STREAM.has(error.status)) {
        return new SecretStoreError("unsupported", "the store has no event stream", { cause: error });
      }
      if (error.status !== UPGRADE_REQUIRED && error.status !== 400) return error;
    }
    return unavailable(`${request.path}: the event stream could not be opened`);
  }

  /** Looks up a token, by default the client's. @throws SecretStoreError `unauthenticated` */
  async lookupSelf(
    options: { token?: Secret; signal?: AbortSignal; timeoutMs?: number } = {},
  ): Promise<TokenInfo> {
    const response = await this.request({ method: "GET", path: LOOKUP_SELF, ...options });
    return readTokenInfo(response.get("data"), (this.#options.clock ?? systemClock).now());
  }

  /**
   * Renews a token, by default the client's, if it is renewable. Returns the new time to live in seconds.
   * @param options.incrementSeconds wanted time to live. The store may shorten it
   */
  async renewSelf(
    options: { token?: Secret; incrementSeconds?: number; signal?: AbortSignal } = {},
  ): Promise<{ ttlSeconds: number; renewable: boolean }> {
    const { incrementSeconds, ...rest } = options;
    const response = await this.request({
      method: "POST",
      path: "auth/token/renew-self",
      body: incrementSeconds === undefined ? "{}" : JSON.stringify({ increment: `${incrementSeconds}s` }),
      repeatable: true,
      ...rest,
    });
    const auth = response.get("auth");
    return { ttlSeconds: auth.get("lease_duration").integer(), renewable: auth.get("renewable").boolean() };
  }

  /** Revokes a token, by default the client's. It does not fail for a token that has already ended. */
  async revokeSelf(options: { token?: Secret; signal?: AbortSignal } = {}): Promise<void> {
    try {
      await this.request({
        method: "POST",
        path: "auth/token/revoke-self",
        repeatable: true,
        mayBeEmpty: true,
        ...options,
      });
    } catch (error) {
      if (!(error instanceof SecretStoreError && error.code === "unauthenticated")) throw error;
    }
  }

  async close(): Promise<void> {
    await this.#transport.close();
  }

  async #try(
    request: VaultRequest,
    token: string | undefined,
    signal: AbortSignal,
    uncertain: boolean,
  ): Promise<ResponsePart> {
    const response = await this.#exchange(request, token, signal);
    if (response.status < 300) {
      return readSuccess(nameOf(request), response, request.mayBeEmpty ?? request.method === "DELETE");
    }
    throw await this.#failure(request, response, token, signal, uncertain);
  }

  /** Sends one request to the known leader, else to the configured server, which may redirect to the leader. */
  async #exchange(
    request: VaultRequest,
    token: string | undefined,
    signal: AbortSignal,
  ): Promise<TransportResponse> {
    if (this.#leader !== undefined) {
      const known = this.#leader;
      this.#leader = undefined;
      const response = await this.#send(known, request, token, signal);
      // A former leader also redirects. Only a redirect of the configured server counts.
      if (!isRedirect(response)) {
        this.#leader = known;
        return response;
      }
    }
    const response = await this.#send(this.#address, request, token, signal);
    if (!isRedirect(response)) return response;
    const leader = await this.#announcedLeader(response, signal);
    const redirected = await this.#send(leader, request, token, signal);
    if (isRedirect(redirected))
      throw unavailable("the store's leader redirects again: an election is under way");
    this.#leader = leader;
    return redirected;
  }

  /**
   * Target of a standby's redirect (307), if the token may be sent there. It must have the same scheme, and be the same
   * host or the leader that the configured server announces. A redirect alone is not enough, because it could come
   * from a program between this host and the store.
   */
  async #announcedLeader(response: TransportResponse, signal: AbortSignal): Promise<VaultAddress> {
    const target = URL.parse(response.location ?? "", this.#address.origin);
    if (target === null || response.status !== 307) {
      throw new ForeignResponse("store.address", response.status, "Vault redirects by 307 only");
    }
    if (target.protocol !== this.#address.protocol) throw misdirected("it redirects to another scheme");
    if (target.origin === this.#address.origin) return this.#address;
    const leaderResponse = await this.#send(
      this.#address,
      { method: "GET", path: "sys/leader", token: null },
      undefined,
      signal,
    );
    const announced = readLeader("GET sys/leader", leaderResponse).get("leader_address").string();
    if (announced === "") throw unavailable("the store has no leader now: an election is under way");
    const leader = leaderAddress(announced);
    if (leader.origin !== target.origin)
      throw misdirected("it redirects to a host that it does not announce as leader");
    return leader;
  }

  #prepare(
    server: VaultAddress,
    request: VaultRequest,
    token: string | undefined,
  ): { url: string; headers: Record<string, string> } {
    const query = new URLSearchParams(request.query);
    if (request.method === "LIST") query.set("list", "true");
    const path = request.path.split("/").map(encodeURIComponent).join("/");
    const url = `${server.base}/v1/${path}${query.size > 0 ? `?${query.toString()}` : ""}`;
    const headers: Record<string, string> = { "x-vault-request": "true", accept: "application/json" };
    if (token !== undefined) headers["x-vault-token"] = token;
    if (this.#options.namespace !== undefined) headers["x-vault-namespace"] = this.#options.namespace;
    if (request.body !== undefined) headers["content-type"] = "application/json";
    return { url, headers };
  }

  async #send(
    server: VaultAddress,
    request: VaultRequest,
    token: string | undefined,
    signal: AbortSignal,
  ): Promise<TransportResponse> {
    const { url, headers } = this.#prepare(server, request, token);
    const method = request.method === "LIST" ? "GET" : request.method;
    return this.#transport.send(method, url, server.origin, {
      headers,
      ...(request.body !== undefined && { body: request.body }),
      timeoutMs: request.timeoutMs ?? this.#options.timing?.tryMs ?? TRY_TIMEOUT_MS,
      signal,
    });
  }

  async #failure(
    request: VaultRequest,
    response: TransportResponse,
    token: string | undefined,
    signal: AbortSignal,
    uncertain: boolean,
  ): Promise<SecretStoreError> {
    const own = readRefusal(nameOf(request), response, isRead(request));
    const refusal = VaultRefusal.from(nameOf(request), response.status, own, uncertain);
    if (
      refusal.code === "denied" &&
      token !== undefined &&
      (await this.#hasTokenEnded(request, refusal, token, signal))
    ) {
      return refusal.as("unauthenticated", "the store does not accept the token", "Log in again.");
    }
    if (response.status === 503 && (await this.#isSealed(signal))) {
      return refusal.as("sealed", "the store is sealed", "Its operators must unseal it.");
    }
    return refusal;
  }

  /** Whether a 403 means that the token has ended, not that a policy forbids the request. Newer versions of Vault state it. */
  async #hasTokenEnded(
    request: VaultRequest,
    refusal: VaultRefusal,
    token: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (refusal.mentions("invalid token") || request.path === LOOKUP_SELF) return true;
    try {
      const lookup = { method: "GET", path: LOOKUP_SELF } as const;
      const response = await this.#send(this.#leader ?? this.#address, lookup, token, signal);
      if (response.status !== 403) return false;
      readRefusal(nameOf(lookup), response, true);
      return true;
    } catch {
      return false;
    }
  }

  async #isSealed(signal: AbortSignal): Promise<boolean> {
    try {
      const health = { method: "GET", path: "sys/health", token: null } as const;
      const { text } = await this.#send(this.#leader ?? this.#address, health, undefined, signal);
      return ResponsePart.parse(text, "sys/health").get("sealed").value === true;
    } catch {
      return false;
    }
  }
}

/** Statuses of servers without events, and of servers with events for a request that is not a WebSocket (RFC 9110). */
const WITHOUT_STREAM: ReadonlySet<number> = new Set([404, 405, 501]);
const UPGRADE_REQUIRED = 426;

const LOOKUP_SELF = "auth/token/lookup-self";

/** Whether to try again within the call. Not for a sealed store, which stays sealed longer than a call lasts. */
function isPassing(error: unknown): boolean {
  return error instanceof SecretStoreError && error.remedy === "retry" && error.code !== "sealed";
}

/** Whether the server may have carried out the request in spite of the error. */
function mayHaveHappened(error: unknown): boolean {
  if (error instanceof TransportError) return error.uncertain;
  // A program between this host and Vault sent 429, or lost Vault's response.
  if (error instanceof ForeignResponse) return error.status !== 429;
  return error instanceof VaultRefusal && error.status >= 500;
}

function isRedirect(response: TransportResponse): boolean {
  return response.status >= 300 && response.status < 400;
}

function isRead({ method }: VaultRequest): boolean {
  return method === "GET" || method === "LIST";
}

function nameOf(request: VaultRequest): string {
  return `${request.method} ${request.path}`;
}

/** Reads an announced address. Its errors name the announcement, because `store.address` itself may be correct. */
function leaderAddress(announced: string): VaultAddress {
  try {
    return parseAddress(announced);
  } catch {
    throw misdirected("the leader's address that it announces cannot be used");
  }
}

function misdirected(problem: string): SecretStoreError {
  return new SecretStoreError(
    "misconfigured",
    `the store at store.address redirects to an address that is not trusted: ${problem}`,
    {
      hint: "Set store.address to the address of the cluster itself; its servers' api_addr must name the same scheme.",
    },
  );
}

function tokenOf(token: Secret | null | undefined): string | undefined {
  if (token === null) return undefined;
  const text = token?.reveal();
  if (text === undefined || text === "") {
    throw new SecretStoreError("unauthenticated", "there is no token for the store", {
      hint: "Log in first.",
    });
  }
  // A header cannot hold other characters, and no store makes such tokens.
  if (!/^[\x21-\x7e]+$/.test(text)) {
    throw new SecretStoreError("unauthenticated", "the token holds characters that no token of a store has");
  }
  return text;
}

import { retry, systemClock, type BackoffOptions, type Clock, type Secret } from "@devplat/base";
import { SecretStoreError, unavailable } from "../errors.ts";
import { parseAddress, type VaultAddress } from "./address.ts";
import { ForeignAnswer, readLeader, readRefusal, readSuccess } from "./own-answer.ts";
import { VaultRefusal } from "./refusal.ts";
import { ResponsePart } from "./response.ts";
import { readTokenInfo, type TokenInfo } from "./token-info.ts";
import { Transport, TransportError, type TransportOptions, type TransportResponse } from "./transport.ts";

/** One try, from connecting to the last byte, in milliseconds. */
const TRY_TIMEOUT_MS = 10_000;
/** A whole call with its retries, in milliseconds: what a person waits for a page at most. */
const CALL_TIMEOUT_MS = 30_000;
/** Tries of one call. */
const ATTEMPTS = 4;

export interface VaultClientOptions extends TransportOptions {
  /** `https://host:port`, perhaps with a path prefix. */
  readonly address: string;
  /** `X-Vault-Namespace` (Vault Enterprise, OpenBao). */
  readonly namespace?: string;
  /** The token of each call, asked anew, as it changes over time; undefined if there is none. */
  readonly token: () => Secret | undefined;
  readonly clock?: Clock;
  /** For tests. Defaults: 10 s a try, 30 s a call, 200 ms before the second try. */
  readonly timing?: BackoffOptions & { readonly tryMs?: number; readonly callMs?: number };
}

export interface VaultRequest {
  /** `LIST` is sent as GET with `list=true`. */
  readonly method: "GET" | "LIST" | "POST" | "PUT" | "DELETE";
  /** Below `/v1/`, unencoded segments joined by `/`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** A JSON text. */
  readonly body?: string;
  /** Another token than the client's; null sends none (login). */
  readonly token?: Secret | null;
  /**
   * Whether the request may be sent again after a fault that leaves open if it was carried out. Default: only GET and
   * LIST.
   */
  readonly repeatable?: boolean;
  /** Whether the endpoint may answer without a body. Default: only DELETE. */
  readonly mayBeEmpty?: boolean;
  /** For an answer that waits for a person (a push approval), in milliseconds. Default: 10 s a try, 30 s a call. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * HashiCorp Vault's and OpenBao's HTTP API: deadlines, one layer of retries (connection faults, 429, 5xx), redirects to
 * the cluster's leader, typed errors. Only Vault's own answers count: any other one is a {@link ForeignAnswer}.
 *
 * Every call throws {@link SecretStoreError}: `unauthenticated`, `denied`, `not_found`, `refused`, `misconfigured`,
 * `sealed`, `unavailable`, `aborted`, `invalid_response`. Refusals are {@link VaultRefusal}.
 */
export class VaultClient {
  readonly #options: VaultClientOptions;
  readonly #address: VaultAddress;
  readonly #transport: Transport;
  /** Where the configured server last redirected us, after it was checked. */
  #leader: VaultAddress | undefined;

  /** @throws SecretStoreError `misconfigured` */
  constructor(options: VaultClientOptions) {
    this.#options = options;
    this.#address = parseAddress(options.address);
    this.#transport = new Transport(options);
  }

  /** The answer's whole body; absent where there is none. */
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
        throw new SecretStoreError("aborted", `${nameOf(request)}: the caller gave up`, { cause: error });
      }
      if (error instanceof SecretStoreError) throw error;
      if (deadline.aborted) throw unavailable(`${nameOf(request)}: no answer in time`, { cause: error });
      throw error;
    }
  }

  /**
   * The JSON messages of a WebSocket, until the signal fires. One connection: no retry.
   * @param opened called once the server has agreed
   * @throws SecretStoreError `unsupported` where the server has no such stream, `unavailable` when it ends by itself
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
    // Asked without an upgrade first: what a WebSocket needs is loaded only where there is a stream to open.
    const refusal = await this.#whyNotOpened(request, token, signal);
    if (refusal.code !== "unavailable") throw refusal;
    try {
      for await (const text of this.#transport.messages(url, headers, signal, open)) {
        yield ResponsePart.parse(text, path);
      }
    } catch (error) {
      if (error instanceof SecretStoreError) throw error;
      if (isOpen) throw unavailable(`${path}: the event stream ended`, { cause: error });
      throw await this.#whyNotOpened(request, token, signal);
    }
  }

  /** A WebSocket that was refused tells no reason: the same request without one does. */
  async #whyNotOpened(
    request: VaultRequest,
    token: string | undefined,
    signal: AbortSignal,
  ): Promise<SecretStoreError> {
    try {
      await this.#try(request, token, signal, false);
    } catch (error) {
      // Vault itself refuses a request without an upgrade by a line of text.
      if (error instanceof ForeignAnswer) return error;
      if (!(error instanceof VaultRefusal)) throw error;
      if (WITHOUT_STREAM.has(error.status)) {
        return new SecretStoreError("unsupported", "the store has no event stream", { cause: error });
      }
      if (error.status !== UPGRADE_REQUIRED && error.status !== 400) return error;
    }
    return unavailable(`${request.path}: the event stream could not be opened`);
  }

  /** What the store knows of a token: the client's, or a candidate. @throws SecretStoreError `unauthenticated` */
  async lookupSelf(
    options: { token?: Secret; signal?: AbortSignal; timeoutMs?: number } = {},
  ): Promise<TokenInfo> {
    const answer = await this.request({ method: "GET", path: LOOKUP_SELF, ...options });
    return readTokenInfo(answer.get("data"), (this.#options.clock ?? systemClock).now());
  }

  /**
   * Renews a token, the client's by default, if it can be. Gives the new time to live in seconds.
   * @param options.incrementSeconds the life to ask for; the store cuts it to what the token may have
   */
  async renewSelf(
    options: { token?: Secret; incrementSeconds?: number; signal?: AbortSignal } = {},
  ): Promise<{ ttlSeconds: number; renewable: boolean }> {
    const { incrementSeconds, ...rest } = options;
    const answer = await this.request({
      method: "POST",
      path: "auth/token/renew-self",
      body: incrementSeconds === undefined ? "{}" : JSON.stringify({ increment: `${incrementSeconds}s` }),
      repeatable: true,
      ...rest,
    });
    const auth = answer.get("auth");
    return { ttlSeconds: auth.get("lease_duration").integer(), renewable: auth.get("renewable").boolean() };
  }

  /** Ends a token, the client's by default. One that has ended already is no error. */
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

  /** One request to the leader that we know, else to the configured server, which may name the leader. */
  async #exchange(
    request: VaultRequest,
    token: string | undefined,
    signal: AbortSignal,
  ): Promise<TransportResponse> {
    if (this.#leader !== undefined) {
      const known = this.#leader;
      this.#leader = undefined;
      const response = await this.#send(known, request, token, signal);
      // A former leader redirects in its turn; only the configured server's word counts.
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
   * The address to which a standby redirects (307), if the token may be sent there: the same scheme, and the same
   * host or the one that the configured server itself announces as the cluster's leader. A redirect alone could come
   * from anything in between.
   */
  async #announcedLeader(response: TransportResponse, signal: AbortSignal): Promise<VaultAddress> {
    const target = URL.parse(response.location ?? "", this.#address.origin);
    if (target === null || response.status !== 307) {
      throw new ForeignAnswer("store.address", response.status, "Vault redirects by 307 only");
    }
    if (target.protocol !== this.#address.protocol) throw misdirected("it redirects to another scheme");
    if (target.origin === this.#address.origin) return this.#address;
    const answer = await this.#send(
      this.#address,
      { method: "GET", path: "sys/leader", token: null },
      undefined,
      signal,
    );
    const announced = readLeader("GET sys/leader", answer).get("leader_address").string();
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
      (await this.#tokenIsDead(request, refusal, token, signal))
    ) {
      return refusal.as("unauthenticated", "the store does not accept the token", "Log in again.");
    }
    if (response.status === 503 && (await this.#isSealed(signal))) {
      return refusal.as("sealed", "the store is sealed", "Its operators must unseal it.");
    }
    return refusal;
  }

  /** Vault answers 403 both for a policy that forbids and for a token that has ended; newer ones say which. */
  async #tokenIsDead(
    request: VaultRequest,
    refusal: VaultRefusal,
    token: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (refusal.mentions("invalid token") || request.path === LOOKUP_SELF) return true;
    try {
      const lookup = { method: "GET", path: LOOKUP_SELF } as const;
      const answer = await this.#send(this.#leader ?? this.#address, lookup, token, signal);
      if (answer.status !== 403) return false;
      readRefusal(nameOf(lookup), answer, true);
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

/** What servers without events answer, and those that have them to a request that is no WebSocket (RFC 9110). */
const WITHOUT_STREAM: ReadonlySet<number> = new Set([404, 405, 501]);
const UPGRADE_REQUIRED = 426;

const LOOKUP_SELF = "auth/token/lookup-self";

/** Worth another try within the call. A sealed store stays so for longer; the caller's own back-off is for that. */
function isPassing(error: unknown): boolean {
  return error instanceof SecretStoreError && error.remedy === "retry" && error.code !== "sealed";
}

/** The fault leaves open whether the server carried the request out. */
function mayHaveHappened(error: unknown): boolean {
  if (error instanceof TransportError) return error.uncertain;
  // Something in between asked to slow down, or lost what Vault answered.
  if (error instanceof ForeignAnswer) return error.status !== 429;
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

/** What the server announces is not `store.address`, so its faults must not be told as those of the configuration. */
function leaderAddress(announced: string): VaultAddress {
  try {
    return parseAddress(announced);
  } catch {
    throw misdirected("the leader's address that it announces cannot be used");
  }
}

function misdirected(problem: string): SecretStoreError {
  return new SecretStoreError("misconfigured", `the store at store.address sends us elsewhere: ${problem}`, {
    hint: "Set store.address to the address of the cluster itself; its servers' api_addr must name the same scheme.",
  });
}

function tokenOf(token: Secret | null | undefined): string | undefined {
  if (token === null) return undefined;
  const text = token?.reveal();
  if (text === undefined || text === "") {
    throw new SecretStoreError("unauthenticated", "there is no token for the store", {
      hint: "Log in first.",
    });
  }
  // Anything else cannot be sent in a header, and no store makes such tokens.
  if (!/^[\x21-\x7e]+$/.test(text)) {
    throw new SecretStoreError("unauthenticated", "the token holds characters that no token of a store has");
  }
  return text;
}

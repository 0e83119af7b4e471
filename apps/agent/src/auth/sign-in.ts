import { Secret, type Clock, type Logger } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { SecretStoreError, type TokenInfo } from "@devplat/secret-store";
import { BRAND } from "../brand.ts";
import { AgentError, publicMessage } from "../errors.ts";
import { isStoreFault } from "../secrets/store-health.ts";
import type { AgentStatus } from "../status.ts";
import { traced, type Facts } from "../telemetry/operation.ts";
import { DeniedTokens } from "./token/denied-tokens.ts";
import type { IdentityPin } from "./token/identity-pin.ts";
import type { TokenFile } from "./token/token-file.ts";

/** The variable that comes before the token file. The store's own standard variable is ignored on purpose. */
export const TOKEN_VARIABLE = `${BRAND.environmentPrefix}_TOKEN`;

/** Reason in the state until the first attempt to find a token has ended. */
export const NOT_TRIED_YET = "not tried yet";

/** Milliseconds without a response about a token, after which the store is reported as unreachable while the request still runs. */
const SILENCE_MS = 3000;

export type TokenSource = AgentStatus["auth"]["source"];

export interface SignInState {
  readonly authenticated: boolean;
  readonly source: TokenSource;
  /** Undefined without a token, and for the embedded store. */
  readonly info: TokenInfo | undefined;
  /** Reason why no user is signed in; null when one is. */
  readonly reason: string | null;
  /** The store has not responded to a request about a token. The request is repeated. */
  readonly storeUnreachable?: true;
  /** The socket of the peer that lent the token. */
  readonly borrowedFrom?: string;
}

/** The signed-in user of the secrets store, with the token. */
export interface SignIn {
  /** The token for the store's requests; undefined while there is none. */
  token(): Secret | undefined;
  state(): SignInState;
  /**
   * Makes sure that the token in use is valid, and looks for another one if not.
   * @throws AgentError `not_signed_in` | SecretStoreError when the store cannot be asked
   */
  ensure(signal: AbortSignal): Promise<void>;
  /** The store has refused the token: the next {@link SignIn.ensure} looks again. */
  invalidate(): void;
  /** Calls back whenever another token, or none, is in use. */
  onChange(listener: () => void): void;
}

/** The embedded store needs no token: the owner of its files may use it. */
export const embeddedSignIn: SignIn = {
  token: () => undefined,
  state: () => ({ authenticated: true, source: "embedded", info: undefined, reason: null }),
  ensure: () => Promise.resolve(),
  invalidate: () => undefined,
  onChange: () => undefined,
};

/** A token that one of the sources offers. */
export interface TokenOffer {
  readonly token: Secret;
  /** The socket that it comes from, for a borrowed one. */
  readonly borrowedFrom?: string;
  /** Signature of the token file that it was written to. */
  readonly kept?: string;
}

/** Why a peer lends no token. */
export interface PeerRefusal {
  readonly refusal: AgentError;
}

/** Requests to the store about tokens. @throws SecretStoreError `unauthenticated` for one that it does not accept */
export interface TokenApi {
  lookup(token: Secret, signal: AbortSignal): Promise<TokenInfo>;
  renew(token: Secret, signal: AbortSignal): Promise<void>;
}

export interface TokenSignInParts {
  readonly environment: NodeJS.ProcessEnv;
  readonly tokenFile: Pick<TokenFile, "path" | "read" | "signature">;
  readonly pin: Pick<IdentityPin, "check" | "adopt">;
  readonly api: TokenApi;
  /** Tokens of peers, best first. */
  readonly borrow: (signal: AbortSignal) => AsyncIterable<TokenOffer | PeerRefusal>;
  /** Signs in by client certificate and keeps the token; undefined for the other methods. */
  readonly automatic: ((signal: AbortSignal) => Promise<TokenOffer | undefined>) | undefined;
  /** False with `store.disable_token_renewal`. */
  readonly renewal: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Why the token of a source was not taken. */
export interface TokenRefusal {
  readonly source: TokenSource;
  /** The store itself does not accept it. Otherwise it was refused here: its file, or its identity. */
  readonly byStore: boolean;
  readonly message: string;
  readonly hint: string | undefined;
}

/** Result of a check whether the token has to be renewed. */
export type Renewal = "renewed" | "not due" | "not possible";

/**
 * Takes the first token that the store accepts: the environment's, the token file's, a peer's, one by certificate.
 * Each is proven by a lookup and must stand for the pinned identity.
 */
export class TokenSignIn implements SignIn {
  readonly #parts: TokenSignInParts;
  readonly #denied: DeniedTokens;
  readonly #listeners = new Set<() => void>();
  #token: Secret | undefined;
  #state: SignInState = { authenticated: false, source: "none", info: undefined, reason: NOT_TRIED_YET };
  /** Signature of the token file at the last attempt. A changed file is a reason for another attempt. */
  #seen: string | undefined;
  #refusals: readonly TokenRefusal[] = [];
  /** The reasons of the last attempt, so that the same ones are not logged each time. */
  #logged = "";
  /** Attempts run one after the other. Two at the same time would ask the store, or sign in by certificate, twice. */
  readonly #turns = new Serializer();

  constructor(parts: TokenSignInParts) {
    this.#parts = parts;
    this.#denied = new DeniedTokens(parts.clock);
  }

  token(): Secret | undefined {
    return this.#token;
  }

  state(): SignInState {
    return this.#state;
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  invalidate(): void {
    if (this.#token !== undefined) this.#drop("the store no longer accepts the token");
  }

  ensure(signal: AbortSignal): Promise<void> {
    return this.#inTurn(() => this.#ensure(signal), signal);
  }

  /** Tokens that the last attempt refused, in its order. */
  refusals(): readonly TokenRefusal[] {
    return this.#refusals;
  }

  /**
   * Prolongs the token once less than `share` of its life is left. A borrowed token is never renewed; see {@link borrowIfDue}.
   * @param share 0 to 1 of the life that it was made with
   * @throws SecretStoreError when the store cannot be asked, or does not renew it
   */
  renewIfDue(share: number, signal: AbortSignal): Promise<Renewal> {
    return this.#inTurn(() => this.#renewIfDue(share, signal), signal);
  }

  /**
   * Asks the peers for another token once less than `share` of a borrowed one's life is left. Nothing else waits for it, as
   * the present token stays in use until there is another.
   * @throws SecretStoreError when the store cannot be asked
   */
  async borrowIfDue(share: number, signal: AbortSignal): Promise<Renewal> {
    const { clock } = this.#parts;
    const before = this.#token;
    const dueAt = this.renewalDueAt(share);
    if (before === undefined || this.#state.source !== "peer") return "not due";
    if (dueAt === undefined || dueAt > clock.now()) return "not due";
    const facts: Facts<"auth.borrow"> = {};
    return await traced("auth.borrow", facts, async () => {
      const result = await this.#borrow(before, signal);
      facts.result = result;
      return result;
    });
  }

  async #borrow(before: Secret, signal: AbortSignal): Promise<Renewal> {
    const { borrow, pin } = this.#parts;
    for await (const offer of borrow(signal)) {
      if ("refusal" in offer) continue;
      const info = await this.#proveAnother(offer, signal);
      if (info === undefined || !isLonger(info, this.#state.info)) continue;
      return await this.#inTurn(async () => {
        if (this.#token !== before) return "not due";
        this.#adopt("peer", offer, info);
        await pin.adopt(offer.token, info, false);
        return "renewed";
      }, signal);
    }
    return "not possible";
  }

  /** When less than `share` of the token's life is left, milliseconds since the epoch; undefined for one without end. */
  renewalDueAt(share: number): number | undefined {
    const { info } = this.#state;
    if (info?.expiresAt === undefined) return undefined;
    return info.expiresAt - share * info.creationTtlSeconds * 1000;
  }

  async #ensure(signal: AbortSignal): Promise<void> {
    const seen = await this.#parts.tokenFile.signature();
    if (this.#token !== undefined && seen === this.#seen && !this.#hasExpired()) return;
    // If the token file changed, its old token is dropped, even if the store cannot check the new one yet.
    if (this.#hasExpired()) this.#drop("the token has expired");
    else if (this.#state.source === "file") this.#drop("the token file has changed");
    const facts: Facts<"auth.sign_in"> = {};
    await traced("auth.sign_in", facts, async () => {
      facts.source = await this.#adoptFirst(seen, signal);
    });
  }

  /** Adopts the first token that the store accepts. @throws AgentError `not_signed_in` */
  async #adoptFirst(seen: string | undefined, signal: AbortSignal): Promise<TokenSource> {
    const refusals: TokenRefusal[] = [];
    this.#refusals = refusals;
    for await (const [source, find] of this.#candidates(signal)) {
      let offer: TokenOffer | undefined;
      try {
        offer = await find();
        if (offer === undefined) continue;
        const { token } = offer;
        const info = await this.#asked(() => this.#prove(token, signal));
        // The signature of the version that was read or written: the file may have changed since.
        this.#seen = offer.kept ?? seen;
        this.#adopt(source, offer, info);
        this.#log(refusals.map(textOf));
        await this.#parts.pin.adopt(offer.token, info, source === "login");
        return source;
      } catch (error) {
        refusals.push(this.#refusal(source, offer, error));
      }
    }
    const reasons = refusals.map(textOf);
    this.#drop(reasons.length === 0 ? "no token found" : reasons.join("; "));
    this.#log(reasons);
    throw new AgentError("not_signed_in", `not signed in to the secrets store: ${this.#state.reason ?? ""}`, {
      hint: `Run '${BRAND.command} login', set ${TOKEN_VARIABLE}, or put a token into ${this.#parts.tokenFile.path} (mode 0600).`,
    });
  }

  async *#candidates(
    signal: AbortSignal,
  ): AsyncGenerator<[TokenSource, () => Promise<TokenOffer | undefined>]> {
    const { environment, tokenFile, borrow, automatic } = this.#parts;
    const given = (environment[TOKEN_VARIABLE] ?? "").trim();
    if (given !== "") yield ["environment", () => Promise.resolve({ token: new Secret(given) })];
    yield ["file", async () => offerOf(await tokenFile.read())];
    for await (const offer of borrow(signal)) {
      yield ["peer", () => ("refusal" in offer ? Promise.reject(offer.refusal) : Promise.resolve(offer))];
    }
    if (automatic === undefined) return;
    yield ["login", () => this.#asked(() => automatic(signal))];
  }

  /** Sends a request to the store. A store that does not respond becomes the reason in the state, before the request ends. */
  async #asked<T>(question: () => Promise<T>): Promise<T> {
    const silence = setTimeout(
      () => this.#noteUnreachable(`the store has not answered within ${SILENCE_MS / 1000} s`),
      SILENCE_MS,
    );
    try {
      return await question();
    } catch (error) {
      if (error instanceof SecretStoreError && isStoreFault(error))
        this.#noteUnreachable(publicMessage(error));
      throw error;
    } finally {
      clearTimeout(silence);
    }
  }

  #noteUnreachable(reason: string): void {
    if (this.#token === undefined) this.#state = { ...this.#state, reason, storeUnreachable: true };
  }

  async #prove(token: Secret, signal: AbortSignal): Promise<TokenInfo> {
    if (this.#denied.has(token)) throw new SecretStoreError("unauthenticated", "refused a short while ago");
    const info = await this.#parts.api.lookup(token, signal);
    await this.#parts.pin.check(info);
    return info;
  }

  /** Undefined for a token that the store or the pin refuses. */
  async #proveAnother({ token }: TokenOffer, signal: AbortSignal): Promise<TokenInfo | undefined> {
    try {
      return await this.#prove(token, signal);
    } catch (error) {
      if (error instanceof AgentError) return undefined;
      if (!(error instanceof SecretStoreError) || error.code !== "unauthenticated") throw error;
      this.#denied.add(token);
      return undefined;
    }
  }

  #adopt(source: TokenSource, { token, borrowedFrom }: TokenOffer, info: TokenInfo): void {
    this.#token = token;
    this.#state = {
      authenticated: true,
      source,
      info,
      reason: null,
      ...(borrowedFrom !== undefined && { borrowedFrom }),
    };
    this.#changed();
  }

  async #renewIfDue(share: number, signal: AbortSignal): Promise<Renewal> {
    const { clock, renewal } = this.#parts;
    const token = this.#token;
    const { info, source } = this.#state;
    const dueAt = this.renewalDueAt(share);
    if (token === undefined || info === undefined || dueAt === undefined || dueAt > clock.now())
      return "not due";
    if (!renewal || source === "peer") return "not possible";
    const facts: Facts<"auth.renewal"> = {};
    return await traced("auth.renewal", facts, async () => {
      const result = await this.#renew(token, info, share, signal);
      facts.result = result;
      return result;
    });
  }

  async #renew(token: Secret, info: TokenInfo, share: number, signal: AbortSignal): Promise<Renewal> {
    const { api, automatic, pin, clock } = this.#parts;
    const { source } = this.#state;
    // The store renews a token of the certificate method only over a connection with that certificate. So log in again.
    const replaced = source === "environment" ? undefined : await automatic?.(signal);
    if (replaced === undefined) {
      if (!info.renewable) return "not possible";
      await api.renew(token, signal);
    }
    const next = replaced?.token ?? token;
    const renewed = await api.lookup(next, signal);
    await pin.check(renewed);
    this.#seen = replaced?.kept ?? this.#seen;
    this.#adopt(replaced === undefined ? source : "login", { token: next }, renewed);
    await pin.adopt(next, renewed, replaced !== undefined);
    // At its maximum TTL the store accepts the renewal without extending the token.
    return (this.renewalDueAt(share) ?? Infinity) > clock.now() ? "renewed" : "not possible";
  }

  /** Why a source gave no usable token. @throws the error if it says nothing about the token */
  #refusal(source: TokenSource, offer: TokenOffer | undefined, error: unknown): TokenRefusal {
    if (error instanceof AgentError) {
      const { message, hint, code } = error;
      if (code !== "identity_refused" || offer === undefined)
        return { source, byStore: false, message, hint };
      const name = this.#nameOf(source, offer);
      const named = `the token of ${name} belongs to another identity than the last one`;
      return { source, byStore: false, message: named, hint };
    }
    if (error instanceof SecretStoreError && error.code === "unauthenticated" && offer !== undefined) {
      this.#denied.add(offer.token);
      const message = `the store does not accept the token of ${this.#nameOf(source, offer)}`;
      return { source, byStore: true, message, hint: undefined };
    }
    // A fault of the store says nothing about a token.
    throw error;
  }

  #nameOf(source: TokenSource, offer: TokenOffer): string {
    if (source === "environment") return TOKEN_VARIABLE;
    if (source === "file") return this.#parts.tokenFile.path;
    return offer.borrowedFrom ?? "the client certificate";
  }

  #hasExpired(): boolean {
    const expiresAt = this.#state.info?.expiresAt;
    return expiresAt !== undefined && expiresAt <= this.#parts.clock.now();
  }

  #drop(reason: string): void {
    const had = this.#token !== undefined;
    this.#token = undefined;
    this.#state = { authenticated: false, source: "none", info: undefined, reason };
    if (!had) return;
    this.#parts.logger.warn({ reason }, "signed out");
    this.#changed();
  }

  #log(reasons: readonly string[]): void {
    const text = reasons.join("; ");
    if (text !== this.#logged && text !== "") this.#parts.logger.warn({ reasons }, "tokens not used");
    this.#logged = text;
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Runs after the actions before it. A caller that gives up while it waits for them does not wait longer. */
  async #inTurn<T>(action: () => Promise<T>, signal: AbortSignal): Promise<T> {
    let begun = false;
    const { promise: givenUp, reject } = Promise.withResolvers<never>();
    const giveUp = (): void => {
      if (!begun) reject(new SecretStoreError("aborted", "cancelled while another sign-in was running"));
    };
    const turn = this.#turns.run(() => {
      begun = !signal.aborted;
      // Otherwise the caller has given up.
      return begun ? action() : givenUp;
    });
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
    try {
      return await Promise.race([turn, givenUp]);
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }
}

/** Whether a token ends later than another one. */
function isLonger(info: TokenInfo, than: TokenInfo | undefined): boolean {
  return (info.expiresAt ?? Infinity) > (than?.expiresAt ?? 0);
}

function textOf({ message, hint }: TokenRefusal): string {
  return hint === undefined ? message : `${message}. ${hint}`;
}

function offerOf(token: Secret | undefined): TokenOffer | undefined {
  return token === undefined ? undefined : { token };
}

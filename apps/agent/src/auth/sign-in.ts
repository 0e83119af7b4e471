import { Secret, type Clock, type Logger } from "@devplat/base";
import { SecretStoreError, type TokenInfo } from "@devplat/secret-store";
import { BRAND } from "../brand.ts";
import { AgentError } from "../errors.ts";
import { publicMessage } from "../sync/records.ts";
import { fileSignature } from "../sync/writer.ts";
import type { AgentStatus } from "../status.ts";
import { readTokenFile } from "./token-file.ts";

/** The variable that comes before the token file. The store's own standard variable is ignored on purpose. */
export const TOKEN_VARIABLE = `${BRAND.environmentPrefix}_TOKEN`;

export type TokenSource = AgentStatus["auth"]["source"];

export interface SignInState {
  readonly authenticated: boolean;
  readonly source: TokenSource;
  /** Undefined without a token, and for the embedded store. */
  readonly info: TokenInfo | undefined;
  /** Why nobody is signed in; null when somebody is. */
  readonly reason: string | null;
}

/** Who is signed in to the secrets store, and with what. */
export interface SignIn {
  /** The token for the store's requests; undefined while there is none. */
  token(): Secret | undefined;
  state(): SignInState;
  /**
   * Makes sure that the token at hand is good, and looks for another one if not.
   * @throws AgentError `not_signed_in` | SecretStoreError when the store cannot be asked
   */
  ensure(signal: AbortSignal): Promise<void>;
  /** The store has refused the token: the next {@link SignIn.ensure} looks again. */
  invalidate(): void;
}

/** The embedded store belongs to whoever owns its files. */
export const embeddedSignIn: SignIn = {
  token: () => undefined,
  state: () => ({ authenticated: true, source: "embedded", info: undefined, reason: null }),
  ensure: () => Promise.resolve(),
  invalidate: () => undefined,
};

export interface TokenSignInParts {
  readonly environment: NodeJS.ProcessEnv;
  readonly tokenFile: string;
  /** Asks the store what it knows of a token. @throws SecretStoreError `unauthenticated` if nothing */
  readonly lookup: (token: Secret, signal: AbortSignal) => Promise<TokenInfo>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Takes the first token that the store accepts: the environment's, then the token file's. */
export class TokenSignIn implements SignIn {
  readonly #parts: TokenSignInParts;
  #token: Secret | undefined;
  #state: SignInState = { authenticated: false, source: "none", info: undefined, reason: "not tried yet" };
  /** Of the token file when it was last looked at: a changed file is a reason to look again. */
  #seen: string | undefined;

  constructor(parts: TokenSignInParts) {
    this.#parts = parts;
  }

  token(): Secret | undefined {
    return this.#token;
  }

  state(): SignInState {
    return this.#state;
  }

  invalidate(): void {
    this.#drop("the store no longer accepts the token");
  }

  async ensure(signal: AbortSignal): Promise<void> {
    const seen = await fileSignature(this.#parts.tokenFile);
    if (this.#token !== undefined && seen === this.#seen && !this.#hasExpired()) return;
    this.#drop("no token found");
    const reasons: string[] = [];
    for (const [source, find] of this.#candidates()) {
      try {
        const token = await find();
        if (token === undefined) continue;
        const info = await this.#parts.lookup(token, signal);
        this.#token = token;
        this.#seen = seen;
        this.#state = { authenticated: true, source, info, reason: null };
        return;
      } catch (error) {
        const reason = this.#refusal(source, error);
        reasons.push(reason);
        this.#parts.logger.warn({ source, reason }, "token not used");
      }
    }
    if (reasons.length > 0) this.#drop(reasons.join("; "));
    throw new AgentError("not_signed_in", `not signed in to the secrets store: ${this.#state.reason ?? ""}`, {
      hint: `Set ${TOKEN_VARIABLE}, or put a token into ${this.#parts.tokenFile} (mode 0600).`,
    });
  }

  #candidates(): [TokenSource, () => Promise<Secret | undefined>][] {
    const given = (this.#parts.environment[TOKEN_VARIABLE] ?? "").trim();
    return [
      ["environment", () => Promise.resolve(given === "" ? undefined : new Secret(given))],
      ["file", () => readTokenFile(this.#parts.tokenFile)],
    ];
  }

  /** Why a source gave no usable token. @throws the error if it says nothing about the token */
  #refusal(source: TokenSource, error: unknown): string {
    const name = source === "environment" ? TOKEN_VARIABLE : this.#parts.tokenFile;
    if (error instanceof AgentError && error.code === "token_file_refused") return publicMessage(error);
    if (error instanceof SecretStoreError && error.code === "unauthenticated") {
      return `the store does not accept the token of ${name}`;
    }
    this.#drop("the store cannot be asked about the token");
    throw error;
  }

  #hasExpired(): boolean {
    const expiresAt = this.#state.info?.expiresAt;
    return expiresAt !== undefined && expiresAt <= this.#parts.clock.now();
  }

  #drop(reason: string): void {
    this.#token = undefined;
    this.#state = { authenticated: false, source: "none", info: undefined, reason };
  }
}

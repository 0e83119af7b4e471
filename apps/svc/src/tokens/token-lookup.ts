import type { Clock } from "@devplat/base";
import type { Store, TokenRecord } from "../storage/store.ts";
import { AddressList } from "./address-list.ts";
import { tokenHash } from "../credentials/token-format.ts";

/** Milliseconds after which a remembered token is read again: so a revocation by another instance counts within 2 s. */
const REREAD_MS = 1000;
/** Tokens remembered; each takes about 1 KB. */
const MAX_REMEMBERED = 10_000;

/** A token as its use needs it. */
export interface KnownToken {
  readonly record: TokenRecord;
  readonly login: string;
  /** Undefined: every address may use it. */
  readonly addresses: AddressList | undefined;
}

/** Finds tokens by value; remembers them for a second, and forgets at once what changes here. */
export class TokenLookup {
  readonly #store: Store;
  readonly #clock: Clock;
  /** By hash; least recently read first. */
  readonly #remembered = new Map<string, { readonly token: KnownToken; readonly readAt: number }>();
  /** Counts the changes, so that a read that began before one is not remembered after it. */
  #changes = 0;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * The token with this value, expired and revoked ones too; undefined: never issued.
   *
   * @throws SvcError `database_unavailable`
   */
  async find(text: string): Promise<KnownToken | undefined> {
    const hash = tokenHash(text);
    const remembered = this.#remembered.get(hash);
    if (remembered !== undefined && this.#clock.monotonic() - remembered.readAt < REREAD_MS) {
      return remembered.token;
    }
    const before = this.#changes;
    const readAt = this.#clock.monotonic();
    const token = await this.#read(hash);
    this.#remembered.delete(hash);
    if (token !== undefined && before === this.#changes) {
      this.#remembered.set(hash, { token, readAt });
      for (const oldest of this.#remembered.keys()) {
        if (this.#remembered.size <= MAX_REMEMBERED) break;
        this.#remembered.delete(oldest);
      }
    }
    return token;
  }

  /** To be called after a token was changed in the store. */
  forget(tokenId: string): void {
    this.#changes++;
    for (const [hash, { token }] of this.#remembered) {
      if (token.record.id === tokenId) this.#remembered.delete(hash);
    }
  }

  async #read(hash: string): Promise<KnownToken | undefined> {
    const record = await this.#store.tokens.findByHash(hash);
    if (record === undefined) return undefined;
    const user = await this.#store.users.get(record.userId);
    if (user === undefined) return undefined;
    return {
      record,
      login: user.login,
      addresses: record.ipAllow.length === 0 ? undefined : new AddressList(record.ipAllow),
    };
  }
}

import type { Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import type { Store, TokenRecord } from "../storage/store.ts";
import { AddressList } from "@devplat/config/address-list";
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

/** Finds tokens by value. It remembers them for a second, or until they change in this instance. */
export class TokenLookup {
  readonly #store: Store;
  readonly #clock: Clock;
  /** By hash; least recently read first. */
  readonly #remembered: BoundedMap<string, KnownToken>;
  /** Counts the changes, so that a read that began before one is not remembered after it. */
  #changes = 0;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#remembered = new BoundedMap({
      max: MAX_REMEMBERED,
      ttlMs: REREAD_MS,
      now: () => clock.monotonic(),
    });
  }

  /**
   * The token with this value, expired and revoked ones too; undefined: never issued.
   *
   * @throws SvcError `database_unavailable`
   */
  async find(text: string): Promise<KnownToken | undefined> {
    const hash = tokenHash(text);
    const remembered = this.#remembered.peek(hash);
    if (remembered !== undefined) return remembered;
    const before = this.#changes;
    const since = this.#clock.monotonic();
    const token = await this.#read(hash);
    if (token !== undefined && before === this.#changes) this.#remembered.set(hash, token, { since });
    else this.#remembered.delete(hash);
    return token;
  }

  /** The caller must call this after it changed a token in the store. */
  forget(tokenId: string): void {
    this.#changes++;
    for (const [hash, { record }] of this.#remembered.entries()) {
      if (record.id === tokenId) this.#remembered.delete(hash);
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

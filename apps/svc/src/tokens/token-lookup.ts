import { Secret, type Clock } from "@devplat/base";
import type { Store, TokenRecord } from "../storage/store.ts";
import { AddressList } from "./address-list.ts";
import { tokenHash } from "./format.ts";

/** Milliseconds after which a remembered token is read again: so a revocation by another instance counts within 2 s. */
const REREAD_MS = 1000;
/** Tokens remembered; each takes about 1 KB. */
const MAX_REMEMBERED = 10_000;

/** A token as its use needs it. */
export interface KnownToken {
  readonly record: TokenRecord;
  readonly login: string;
  /** The `Authorization` that stands in for the token upstream; undefined: the user has no stored credential. */
  readonly authorization: Secret | undefined;
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
   * @throws SvcError `database_unavailable`, `encryption_key`
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

  /** To be called after a token, or a user's credential, was changed in the store. */
  forget(change: { readonly tokenId: string } | { readonly userId: string }): void {
    this.#changes++;
    for (const [hash, { token }] of this.#remembered) {
      const hit =
        "tokenId" in change ? token.record.id === change.tokenId : token.record.userId === change.userId;
      if (hit) this.#remembered.delete(hash);
    }
  }

  async #read(hash: string): Promise<KnownToken | undefined> {
    const record = await this.#store.tokens.findByHash(hash);
    if (record === undefined) return undefined;
    const [user, credential] = await Promise.all([
      this.#store.users.get(record.userId),
      this.#store.users.credential(record.userId),
    ]);
    if (user === undefined) return undefined;
    return {
      record,
      login: user.login,
      authorization: credential === undefined ? undefined : hostAuthorization(credential.accessToken),
      addresses: record.ipAllow.length === 0 ? undefined : new AddressList(record.ipAllow),
    };
  }
}

/** A code-host token as its git endpoints take it: Basic with the user name that stands for any token. */
export function hostAuthorization(credential: Secret): Secret {
  const pair = Buffer.from(`x-access-token:${credential.reveal()}`).toString("base64");
  return new Secret(`Basic ${pair}`);
}

import { addressKey } from "@devplat/config/address-key";

/**
 * Bytes up to which a body is always taken: nearly every clone, fetch and query is smaller, and must not be kept out by
 * large bodies of other clients. The limits of requests and connections bound their number.
 */
export const SMALL_BODY_BYTES = 64 * 1024;
/** The part of all bytes that one client may have held, unless it is a single body. */
const CLIENT_SHARE = 1 / 4;

/** The share of one body in what is held. */
export interface HeldPlace {
  /** Takes so many bytes more. @returns false: there is no room for them */
  grow(bytes: number): boolean;
  /** Gives all of them back; calling it again does nothing. */
  leave(): void;
}

/**
 * Bounds the bytes of large bodies in memory, over all and for each client, so that bodies which never end keep no
 * others out.
 */
export class HeldBytes {
  readonly #max: number;
  #all = 0;
  readonly #byClient = new Map<string, number>();

  /** @param max bytes over all */
  constructor(max: number) {
    this.#max = max;
  }

  /** @param address of the client; empty: not known, as behind a Unix socket, where clients cannot be told apart */
  place(address: string): HeldPlace {
    const client = addressKey(address);
    let size = 0;
    let counted = 0;
    return {
      grow: (bytes) => {
        size += bytes;
        if (size <= SMALL_BODY_BYTES) return true;
        const added = size - counted;
        const others = client === "" ? 0 : (this.#byClient.get(client) ?? 0) - counted;
        if (others > 0 && others + size > this.#max * CLIENT_SHARE) return false;
        if (this.#all + added > this.#max) return false;
        this.#add(client, added);
        counted = size;
        return true;
      },
      leave: () => {
        if (counted > 0) this.#add(client, -counted);
        counted = 0;
      },
    };
  }

  #add(client: string, bytes: number): void {
    this.#all += bytes;
    const held = (this.#byClient.get(client) ?? 0) + bytes;
    if (held === 0) this.#byClient.delete(client);
    else this.#byClient.set(client, held);
  }
}

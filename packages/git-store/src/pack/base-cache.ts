/** Default capacity of a {@link BaseCache}, bytes of content. */
export const DEFAULT_BASE_CACHE_BYTES = 32 * 1024 * 1024;

/** An object's type number and content. The content is shared with the cache: read it, do not write it. */
export interface RawObject {
  /** 1 commit, 2 tree, 3 blob, 4 tag. */
  readonly type: number;
  readonly content: Buffer;
}

interface Node {
  readonly key: number;
  object: RawObject;
  /** The entry that was used next after this one. */
  newer: Node | undefined;
  older: Node | undefined;
}

/**
 * Least-recently-used cache of delta bases, limited in bytes.
 *
 * The order is a linked list, because reading the first key of a Map steps over every deleted key. That made a
 * Map the most expensive part of a walk.
 */
export class BaseCache {
  readonly #capacity: number;
  readonly #nodes = new Map<number, Node>();
  #newest: Node | undefined;
  #oldest: Node | undefined;
  #size = 0;

  constructor(capacityBytes: number = DEFAULT_BASE_CACHE_BYTES) {
    this.#capacity = capacityBytes;
  }

  /** Bytes held. */
  get size(): number {
    return this.#size;
  }

  get(key: number): RawObject | undefined {
    const node = this.#nodes.get(key);
    if (node === undefined) return undefined;
    if (node !== this.#newest) {
      this.#unlink(node);
      this.#link(node);
    }
    return node.object;
  }

  set(key: number, object: RawObject): void {
    // One large blob must not empty the cache.
    if (object.content.length > this.#capacity / 4) return;
    this.#drop(this.#nodes.get(key));
    const node: Node = { key, object, newer: undefined, older: undefined };
    this.#nodes.set(key, node);
    this.#link(node);
    this.#size += object.content.length;
    while (this.#size > this.#capacity) this.#drop(this.#oldest);
  }

  clear(): void {
    this.#nodes.clear();
    this.#newest = undefined;
    this.#oldest = undefined;
    this.#size = 0;
  }

  #drop(node: Node | undefined): void {
    if (node === undefined) return;
    this.#nodes.delete(node.key);
    this.#unlink(node);
    this.#size -= node.object.content.length;
  }

  #link(node: Node): void {
    node.older = this.#newest;
    node.newer = undefined;
    if (this.#newest !== undefined) this.#newest.newer = node;
    this.#newest = node;
    this.#oldest ??= node;
  }

  #unlink(node: Node): void {
    if (node.newer === undefined) this.#newest = node.older;
    else node.newer.older = node.older;
    if (node.older === undefined) this.#oldest = node.newer;
    else node.older.newer = node.newer;
  }
}

/** The root's number, by the protocol. */
export const ROOT_ID = 1n;

/** A node that the kernel knows. */
export interface Node {
  /** Number of the node. Never used again. */
  readonly id: bigint;
  /** Lookups that the kernel has not forgotten. */
  lookups: bigint;
  /** Open handles. */
  opens: number;
}

/** All nodes that the kernel or an open handle uses. */
export class NodeTable<Known extends Node> {
  readonly #nodes = new Map<bigint, Known>();
  readonly #onRemove: (node: Known) => void;
  readonly #onReturn: (node: Known) => void;
  #last = ROOT_ID;

  /**
   * @param onRemove called when nobody uses a node any more
   * @param onReturn called when the kernel uses such a node again
   */
  constructor(root: Known, onRemove: (node: Known) => void, onReturn: (node: Known) => void) {
    this.#onReturn = onReturn;
    this.#nodes.set(ROOT_ID, root);
    this.#onRemove = onRemove;
  }

  /** Number of nodes, with the root. */
  get size(): number {
    return this.#nodes.size;
  }

  get(id: bigint): Known | undefined {
    return this.#nodes.get(id);
  }

  nextId(): bigint {
    return ++this.#last;
  }

  add(node: Known): void {
    this.#nodes.set(node.id, node);
  }

  /** The kernel gets to know a node. It may have forgotten it while the reply was made. */
  lookedUp(node: Known): void {
    node.lookups++;
    if (this.#nodes.has(node.id)) return;
    this.#nodes.set(node.id, node);
    this.#onReturn(node);
  }

  forget(id: bigint, lookups: bigint): void {
    const node = this.#nodes.get(id);
    if (node === undefined) return;
    node.lookups = node.lookups > lookups ? node.lookups - lookups : 0n;
    this.#removeUnused(node);
  }

  close(node: Known): void {
    node.opens--;
    this.#removeUnused(node);
  }

  #removeUnused(node: Known): void {
    if (node.id === ROOT_ID || node.lookups > 0n || node.opens > 0) return;
    this.#nodes.delete(node.id);
    this.#onRemove(node);
  }
}

import { FileError } from "./file-error.ts";
import type { NodeTable } from "./node-table.ts";
import type { DirectoryNode, FileNode, MountNode } from "./nodes.ts";

/** The nodes that requests of the kernel name. */
export class RequestedNodes {
  readonly #nodes: NodeTable<MountNode>;

  constructor(nodes: NodeTable<MountNode>) {
    this.#nodes = nodes;
  }

  /** @throws FileError ESTALE: the kernel does not use a node that it has forgotten */
  node(id: bigint): MountNode {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new FileError("ESTALE");
    return node;
  }

  /** @throws FileError ESTALE; ENOTDIR */
  directory(id: bigint): DirectoryNode {
    const node = this.node(id);
    if (node.kind !== "directory") throw new FileError("ENOTDIR");
    return node;
  }

  /** @throws FileError ESTALE; EISDIR */
  file(id: bigint): FileNode {
    const node = this.node(id);
    if (node.kind === "directory") throw new FileError("EISDIR");
    return node;
  }
}

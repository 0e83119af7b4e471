import { BoundedMap } from "@devplat/base/bounded-map";
import type { NodeTable } from "./node-table.ts";
import type {
  DirectoryNode,
  DirectoryPlace,
  FileContent,
  FileNode,
  MountNode,
  StoredSource,
} from "./nodes.ts";
import type { Draft } from "./writing/draft.ts";
import type { StaleRetries } from "./writing/stale-retries.ts";

/** Maximum names whose last inode number is kept. */
const MAX_INODES = 10_000;

/** Which node each name is now. A name whose content has changed gets another node. */
export class NamedNodes {
  readonly #nodes: NodeTable<MountNode>;
  readonly #reopenings: StaleRetries;
  readonly #inodes = new BoundedMap<string, { version: string; inode: bigint }>({ max: MAX_INODES });

  constructor(nodes: NodeTable<MountNode>, reopenings: StaleRetries) {
    this.#nodes = nodes;
    this.#reopenings = reopenings;
  }

  directory(parent: DirectoryNode, name: string, place: DirectoryPlace): DirectoryNode {
    const known = parent.children.get(name);
    if (known?.kind === "directory" && known.place.kind === place.kind) return known;
    const node: DirectoryNode = {
      ...this.#newNode(parent, name),
      kind: "directory",
      place:
        place.kind === "fields"
          ? { kind: "fields", path: place.path }
          : { kind: "folder", folder: place.folder },
      children: new Map(),
    };
    return this.#add(parent, name, node);
  }

  /** A version of a file. @param pid of the look-up. 0: nobody opens it immediately */
  version(
    parent: DirectoryNode,
    name: string,
    source: StoredSource,
    content: FileContent,
    pid: number,
  ): FileNode {
    const isReopening = this.#reopenings.has(parent, name, pid);
    const known = parent.children.get(name);
    if (
      known?.kind === "file" &&
      known.source.kind === source.kind &&
      known.key === content.key &&
      known.draft === undefined &&
      known.reservedFor === (isReopening ? pid : undefined)
    )
      return known;
    const { key, modifiedMs, version, bytes } = content;
    const created = this.#newNode(parent, name);
    const node: FileNode = {
      ...created,
      kind: "file",
      inode: this.#inode(parent, name, key, created.id),
      source,
      key,
      size: bytes.length,
      modifiedMs,
      version,
      draft: undefined,
      isReplaced: false,
      isShared: false,
      reservedFor: isReopening ? pid : undefined,
    };
    return this.#add(parent, name, node);
  }

  /** A file that is only in memory. */
  inMemory(parent: DirectoryNode, name: string, draft: Draft): FileNode {
    const known = parent.children.get(name);
    if (known?.kind === "file" && known.draft === draft) return known;
    const created = this.#newNode(parent, name);
    return this.#add(parent, name, {
      ...created,
      kind: "file",
      inode: created.id,
      source: { kind: "memory" },
      key: "",
      size: 0,
      modifiedMs: 0,
      version: undefined,
      draft,
      isReplaced: false,
      isShared: false,
      reservedFor: undefined,
    });
  }

  /** All nodes of a version have one inode number, also after the kernel has forgotten some of them. */
  #inode(parent: DirectoryNode, name: string, version: string, otherwise: bigint): bigint {
    const place = `${parent.id} ${name}`;
    const last = this.#inodes.get(place);
    if (last?.version === version) return last.inode;
    this.#inodes.set(place, { version, inode: otherwise });
    return otherwise;
  }

  #newNode<Parent>(
    parent: Parent,
    name: string,
  ): { id: bigint; lookups: bigint; opens: number; parent: Parent; name: string } {
    return { id: this.#nodes.nextId(), lookups: 0n, opens: 0, parent, name };
  }

  #add<Added extends MountNode>(parent: DirectoryNode, name: string, node: Added): Added {
    parent.children.set(name, node);
    this.#nodes.add(node);
    return node;
  }
}

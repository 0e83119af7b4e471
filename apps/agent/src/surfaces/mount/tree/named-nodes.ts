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
import type { Reopenings } from "./writing/reopenings.ts";

/** Which node each name is now. A name whose content has changed gets another node. */
export class NamedNodes {
  readonly #nodes: NodeTable<MountNode>;
  readonly #reopenings: Reopenings;

  constructor(nodes: NodeTable<MountNode>, reopenings: Reopenings) {
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
    const node: FileNode = {
      ...this.#newNode(parent, name),
      kind: "file",
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
    return this.#add(parent, name, {
      ...this.#newNode(parent, name),
      kind: "file",
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

import { BoundedMap } from "@devplat/base/bounded-map";
import type { RenderedFileSettings } from "../channel/messages.ts";
import type { Timers } from "../timers.ts";
import type { Contents, Kept } from "./contents.ts";
import { FileError, StoreFault } from "./file-error.ts";
import { isFileName, type NamedEntry } from "./file-names.ts";
import type { NamedNodes } from "./named-nodes.ts";
import {
  pathOf,
  type DirectoryNode,
  type FileContent,
  type FileNode,
  type FileSource,
  type MountNode,
  type StoredSource,
} from "./nodes.ts";
import type { NamedNode } from "./reply.ts";
import type { Draft } from "./writing/draft.ts";
import type { Overlay } from "./writing/overlay.ts";
import type { StaleRetries } from "./writing/stale-retries.ts";

/** A file that is only in memory. */
interface MemoryItem {
  readonly kind: "memory";
  readonly draft: Draft;
}

/** Meaning of a name in a directory, before its content is known. */
export type DirectoryItem = NamedEntry | Extract<FileSource, { kind: "field" | "rendered" }> | MemoryItem;

/** Time for which the bytes of a version are kept for the open that follows a look-up, in milliseconds. */
const OPEN_WINDOW_MS = 2000;
/** Maximum memory for them, in bytes. */
const MAX_RECENT_BYTES = 16 * 1024 * 1024;

export interface DirectoriesParts {
  readonly contents: Contents;
  readonly nodes: NamedNodes;
  readonly timers: Timers;
  readonly rendered: () => readonly RenderedFileSettings[];
  readonly overlay: Overlay;
  readonly reopenings: StaleRetries;
}

/** The directories of the mount: which names they have, and which node each name is now. */
export class Directories {
  readonly #parts: DirectoriesParts;
  /** Bytes of the versions that were looked up last, by node. */
  readonly #recent: BoundedMap<bigint, Buffer>;
  #cleaning = false;

  constructor(parts: DirectoriesParts) {
    this.#parts = parts;
    this.#recent = new BoundedMap({
      max: MAX_RECENT_BYTES,
      sizeOf: (bytes: Buffer) => bytes.length + 1,
      ttlMs: OPEN_WINDOW_MS,
      now: () => parts.timers.now(),
    });
  }

  /** Everything in a directory, by file name. @throws StoreFault; FileError */
  async items(directory: DirectoryNode): Promise<Kept<ReadonlyMap<string, DirectoryItem>>> {
    const { overlay } = this.#parts;
    return overlay.isEmpty ? await this.storedItems(directory) : await this.#overlaidItems(directory);
  }

  /** The same without what is only in memory. @throws StoreFault; FileError */
  async storedItems(directory: DirectoryNode): Promise<Kept<ReadonlyMap<string, DirectoryItem>>> {
    const { contents } = this.#parts;
    const { place } = directory;
    if (place.kind === "fields") {
      const { value, untilMs } = await contents.secret(place.path);
      const names = [...value.fields.keys()].filter(isFileName);
      const items = names.map((field) => [field, { kind: "field", path: place.path, field }] as const);
      return { value: new Map(items), untilMs };
    }
    const rendered = this.#renderedItems(directory);
    try {
      const { value, untilMs } = await contents.listing(place.folder);
      if (rendered.size === 0) return { value: value.entries, untilMs };
      // A secret's file comes first. The status of the rule then says that its file is not shown.
      return { value: new Map<string, DirectoryItem>([...rendered, ...value.entries]), untilMs };
    } catch (error) {
      // A folder that only rendered files need does not exist in the store, or nobody may list it.
      const isDecision = error instanceof StoreFault && error.isDecision;
      if (!isDecision || rendered.size === 0) throw error;
      return { value: rendered, untilMs: contents.listingFailsUntil(place.folder) };
    }
  }

  /** As {@link items}, without rendered files that have no content now. @throws StoreFault; FileError */
  async listed(directory: DirectoryNode): Promise<Kept<ReadonlyMap<string, DirectoryItem>>> {
    const { contents } = this.#parts;
    const { value, untilMs } = await this.items(directory);
    const shown = new Map(value);
    await Promise.all(
      value.entries().map(async ([name, item]) => {
        if (item.kind !== "rendered") return;
        await contents.rendered(item.path).catch((error: unknown) => {
          if (error instanceof StoreFault && error.code === "not_rendered") shown.delete(name);
        });
      }),
    );
    return { value: shown, untilMs };
  }

  /** Whether a name is that of a rendered file, also of one without content now. */
  isRendered(directory: DirectoryNode, name: string): boolean {
    const known = directory.children.get(name);
    const isOther = known?.kind === "directory" || (known !== undefined && known.source.kind !== "rendered");
    return !isOther && this.#renderedItems(directory).get(name)?.kind === "rendered";
  }

  /** The node of a name. @throws FileError ENOENT, with the time for which the kernel may remember that; others */
  async find(
    directory: DirectoryNode,
    name: string,
    pid: number,
  ): Promise<NamedNode | { readonly missingMs: number }> {
    const inMemory = this.#parts.overlay.isEmpty ? undefined : this.#findInMemory(directory, name);
    if (inMemory !== undefined) return inMemory;
    const { value, untilMs } = await this.storedOrEmpty(directory);
    const item = value.get(name);
    if (item === undefined) return { missingMs: this.#remaining(untilMs) };
    return await this.node(directory, name, item, untilMs, pid);
  }

  /** The node of an item. @param untilMs time until which the listing is valid. @throws StoreFault; FileError */
  async node(
    directory: DirectoryNode,
    name: string,
    item: DirectoryItem,
    untilMs: number,
    pid = 0,
  ): Promise<NamedNode> {
    const named = (node: MountNode, contentUntilMs: number): NamedNode => ({
      node,
      validMs: this.#remaining(Math.min(untilMs, contentUntilMs)),
    });
    switch (item.kind) {
      case "folder":
        return named(this.#parts.nodes.directory(directory, name, item), untilMs);
      case "fields":
        return named(this.#parts.nodes.directory(directory, name, item), untilMs);
      case "memory":
        return { node: this.#parts.nodes.inMemory(directory, name, item.draft), validMs: 0 };
      default: {
        const { value, untilMs: contentUntilMs } = await this.content(item);
        const node = this.#parts.nodes.version(directory, name, item, value, pid);
        this.#remember(node, value);
        return named(node, contentUntilMs);
      }
    }
  }

  /** The bytes of a file as they are now. @throws StoreFault; FileError */
  async content(source: StoredSource): Promise<Kept<FileContent>> {
    const { contents } = this.#parts;
    if (source.kind === "rendered") {
      const { value, untilMs } = await contents.rendered(source.path);
      return {
        value: { bytes: value.bytes, key: value.digest, modifiedMs: value.changedAt, version: undefined },
        untilMs,
      };
    }
    const { value, untilMs } = await contents.secret(source.path);
    const bytes = source.kind === "field" ? value.field(source.field) : value.document;
    if (bytes === undefined) throw new FileError("ENOENT");
    return { value: { bytes, key: value.key, modifiedMs: value.createdAt, version: value.version }, untilMs };
  }

  /**
   * The bytes of this version, also if there is already a newer one. The kernel looks a name up a second time before an open fails,
   * and not a third time.
   * @throws FileError ESTALE after a time; StoreFault; FileError
   */
  async versionBytes(node: FileNode, pid: number): Promise<Buffer> {
    const { reopenings } = this.#parts;
    const { source, parent, name } = node;
    if (source.kind === "memory") throw new FileError("ESTALE");
    const recent = this.#recent.get(node.id);
    const { value } = await this.content(source);
    if (value.key === node.key) return value.bytes;
    // On the second try, the version that was just looked up is good enough.
    if (recent !== undefined && (!node.isReplaced || reopenings.has(parent, name, pid))) return recent;
    reopenings.add(parent, name, pid);
    throw new FileError("ESTALE");
  }

  #remember(node: FileNode, { bytes }: FileContent): void {
    this.#recent.set(node.id, bytes);
    if (this.#cleaning) return;
    this.#cleaning = true;
    this.#parts.timers.after(OPEN_WINDOW_MS, () => {
      this.#cleaning = false;
      this.#recent.purge();
    });
  }

  #remaining(untilMs: number): number {
    return Math.max(0, untilMs - this.#parts.timers.now());
  }

  async #overlaidItems(directory: DirectoryNode): Promise<Kept<ReadonlyMap<string, DirectoryItem>>> {
    const { overlay } = this.#parts;
    const path = pathOf(directory);
    const items = new Map<string, DirectoryItem>();
    const { value, untilMs } = await this.storedOrEmpty(directory);
    for (const [name, item] of value)
      if (overlay.hidden({ directory: path, name }) === undefined) items.set(name, item);
    if (directory.place.kind === "folder") {
      const { folder } = directory.place;
      for (const name of overlay.foldersIn(folder))
        items.set(name, { kind: "folder", folder: `${folder}${name}/` });
    }
    for (const [name, draft] of overlay.files(path)) items.set(name, { kind: "memory", draft });
    return { value: items, untilMs };
  }

  #findInMemory(
    directory: DirectoryNode,
    name: string,
  ): NamedNode | { readonly missingMs: number } | undefined {
    const { overlay } = this.#parts;
    const place = { directory: pathOf(directory), name };
    const draft = overlay.file(place);
    if (draft !== undefined) return { node: this.#parts.nodes.inMemory(directory, name, draft), validMs: 0 };
    if (overlay.hidden(place) !== undefined) return { missingMs: 0 };
    if (directory.place.kind !== "folder") return undefined;
    const folder = `${directory.place.folder}${name}/`;
    if (!overlay.hasFolder(folder)) return undefined;
    return { node: this.#parts.nodes.directory(directory, name, { kind: "folder", folder }), validMs: 0 };
  }

  /** A directory that is only in memory has nothing in the store. @throws StoreFault; FileError */
  async storedOrEmpty(directory: DirectoryNode): Promise<Kept<ReadonlyMap<string, DirectoryItem>>> {
    const { overlay, timers } = this.#parts;
    try {
      return await this.storedItems(directory);
    } catch (error) {
      const { place } = directory;
      const isInMemory = place.kind === "folder" && overlay.hasFolder(place.folder);
      if (!isInMemory || !(error instanceof StoreFault) || error.code !== "not_found") throw error;
      return { value: new Map(), untilMs: timers.now() };
    }
  }

  /** Rendered files directly in a directory, and directories on the way to them. */
  #renderedItems(directory: DirectoryNode): ReadonlyMap<string, DirectoryItem> {
    const items = new Map<string, DirectoryItem>();
    const rendered = this.#parts.rendered();
    if (rendered.length === 0) return items;
    const path = pathOf(directory);
    const start = path === "" ? "" : `${path}/`;
    for (const each of rendered) {
      if (!each.path.startsWith(start)) continue;
      const [name = "", ...others] = each.path.slice(start.length).split("/");
      if (others.length === 0) items.set(name, { kind: "rendered", path: each.path });
      else items.set(name, { kind: "folder", folder: `${start}${name}/` });
    }
    return items;
  }
}

import { constants } from "node:fs";
import { OPEN_REPLY_FLAGS, type FuseRequest } from "@devplat/fuse-protocol";
import type { RenderedFileSettings } from "../channel/messages.ts";
import type { Directories, DirectoryItem } from "./directories.ts";
import { FileError } from "./file-error.ts";
import type { OpenAudit } from "./open-audit.ts";
import { pathOf, type DirectoryNode, type FileNode } from "./nodes.ts";
import { ReadAhead } from "./read-ahead.ts";
import type { ListedEntry, OpenHandle, Reply } from "./reply.ts";
import type { ReadVersions } from "./read-versions.ts";
import type { StaleRetries } from "./writing/stale-retries.ts";

/** Bytes of an entry of READDIRPLUS without its name, at least. So many entries are read ahead for one reply. */
const MIN_PLUS_BYTES = 160;
const VERSION_ATTRIBUTE = "user.version";

/** An open file whose bytes never change. */
export interface ReadHandle extends OpenHandle {
  readonly kind: "read";
  readonly node: FileNode;
  readonly bytes: Buffer;
}

/** An open directory. It shows what was there when its reading began. */
export interface DirectoryHandle extends OpenHandle {
  readonly kind: "directory";
  readonly node: DirectoryNode;
  items: readonly (readonly [string, DirectoryItem])[] | undefined;
  untilMs: number;
}

/** Reading files and directories. */
export class Reading {
  readonly #directories: Directories;
  readonly #audit: OpenAudit;
  readonly #rendered: () => readonly RenderedFileSettings[];
  readonly #reopenings: StaleRetries;
  readonly #readVersions: ReadVersions;
  readonly #readAhead = new ReadAhead();

  constructor(
    directories: Directories,
    audit: OpenAudit,
    rendered: () => readonly RenderedFileSettings[],
    reopenings: StaleRetries,
    readVersions: ReadVersions,
  ) {
    this.#readVersions = readVersions;
    this.#reopenings = reopenings;
    this.#directories = directories;
    this.#audit = audit;
    this.#rendered = rendered;
  }

  async lookup(directory: DirectoryNode, name: string, pid: number): Promise<Reply> {
    const finding = this.#directories.find(directory, name, pid);
    this.#prefetch(this.#readAhead.lookedUp(directory, name));
    const found = await finding;
    if ("missingMs" in found) return { kind: "missing", validMs: found.missingMs };
    return { kind: "entry", ...found };
  }

  /**
   * Opens a version of a file.
   * @throws FileError ESTALE when the file has changed since the lookup: the kernel looks it up again, and opens that
   */
  async open(node: FileNode, pid: number): Promise<Reply> {
    const { source } = node;
    if (source.kind === "rendered") {
      const settings = this.#rendered().find(({ path }) => path === source.path);
      if (settings !== undefined) this.#audit.checkAllowed(settings, pid);
    }
    if (isWritten(node, pid)) return this.#reopen(node, pid);
    const bytes = await this.#directories.versionBytes(node, pid);
    if (isWritten(node, pid)) return this.#reopen(node, pid);
    this.#reopenings.end(node.parent, node.name, pid);
    node.isShared = true;
    node.reservedFor = undefined;
    if (source.kind === "secret" && node.version !== undefined)
      this.#readVersions.opened(source.path, node.version);
    this.#audit.opened(pathOf(node), pid);
    const handle: ReadHandle = { kind: "read", node, bytes };
    // The pages of a version stay valid, because its bytes never change. A close has nothing to store. Without FLUSH it succeeds
    // after the end of this process, too: many programs do not expect an error there.
    return { kind: "opened", handle, flags: OPEN_REPLY_FLAGS.keepCache | OPEN_REPLY_FLAGS.noFlush };
  }

  /**
   * Opens a node whose pages belong to a handle that writes. The first try is answered with ESTALE, so that the kernel looks the
   * name up again. If that gave such a node too, the caller reads past the pages.
   */
  async #reopen(node: FileNode, pid: number): Promise<Reply> {
    const reopenings = this.#reopenings;
    if (!reopenings.has(node.parent, node.name, pid)) {
      reopenings.add(node.parent, node.name, pid);
      throw new FileError("ESTALE");
    }
    if (node.source.kind === "memory") throw new FileError("ESTALE");
    const { value } = await this.#directories.content(node.source);
    reopenings.end(node.parent, node.name, pid);
    if (node.source.kind === "secret" && value.version !== undefined)
      this.#readVersions.opened(node.source.path, value.version);
    const handle: ReadHandle = { kind: "read", node, bytes: value.bytes };
    return { kind: "opened", handle, flags: OPEN_REPLY_FLAGS.directIo };
  }

  read({ bytes }: ReadHandle, { offset, size }: Extract<FuseRequest, { operation: "read" }>): Reply {
    return { kind: "data", bytes: bytes.subarray(offset, offset + size) };
  }

  openDirectory(node: DirectoryNode): Reply {
    const handle: DirectoryHandle = { kind: "directory", node, items: undefined, untilMs: 0 };
    return { kind: "opened", handle, flags: 0 };
  }

  /** @throws StoreFault; FileError */
  async list(
    handle: DirectoryHandle,
    { operation, offset, size }: Extract<FuseRequest, { operation: "readdir" | "readdirplus" }>,
  ): Promise<Reply> {
    if (handle.items === undefined || offset === 0) {
      const { value, untilMs } = await this.#directories.listed(handle.node);
      handle.items = [...value];
      handle.untilMs = untilMs;
      this.#readAhead.listed(handle.node, handle.items);
    }
    const plus = operation === "readdirplus";
    const links = [".", ".."].map((name, index): ListedEntry => ({
      name,
      mode: constants.S_IFDIR,
      nextOffset: index + 1,
      named: undefined,
    }));
    const count = Math.max(1, Math.floor(size / MIN_PLUS_BYTES));
    const start = Math.max(0, offset - links.length);
    const items = handle.items.slice(start, start + (plus ? count : handle.items.length));
    if (plus) this.#prefetch(handle.items.slice(start + count, start + 2 * count));
    const entries = await Promise.all(
      items.map(async ([name, item], index): Promise<ListedEntry> => ({
        name,
        mode: item.kind === "folder" || item.kind === "fields" ? constants.S_IFDIR : constants.S_IFREG,
        nextOffset: links.length + start + index + 1,
        // A secret that cannot be read now is listed all the same.
        named: plus
          ? await this.#directories.node(handle.node, name, item, handle.untilMs).catch(() => undefined)
          : undefined,
      })),
    );
    return { kind: "listing", entries: [...links.slice(offset), ...entries], size, plus };
  }

  /** Asks for secrets that are probably next, while this reply is made. */
  #prefetch(items: readonly (readonly [string, DirectoryItem])[]): void {
    for (const [, item] of items)
      if (item.kind === "secret") this.#directories.content(item).catch(() => undefined);
  }

  extendedAttribute(node: FileNode | DirectoryNode, name: string | undefined, size: number): Reply {
    const version = node.kind === "file" ? node.version : undefined;
    if (name !== VERSION_ATTRIBUTE || version === undefined) throw new FileError("ENODATA");
    return sized(Buffer.from(String(version)), size);
  }

  extendedAttributes(node: FileNode | DirectoryNode, size: number): Reply {
    const hasVersion = node.kind === "file" && node.version !== undefined;
    return sized(Buffer.from(hasVersion ? `${VERSION_ATTRIBUTE}\0` : ""), size);
  }
}

/** Whether the pages of a node belong, or will belong, to a handle that writes. */
function isWritten({ draft, reservedFor }: FileNode, pid: number): boolean {
  return draft !== undefined || (reservedFor !== undefined && reservedFor !== pid);
}

/** A value, or only its length when `size` is 0 (getxattr(2)). */
function sized(bytes: Buffer, size: number): Reply {
  if (size === 0) return { kind: "length", length: bytes.length };
  if (bytes.length > size) throw new FileError("ERANGE");
  return { kind: "data", bytes };
}

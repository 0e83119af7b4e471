import { constants } from "node:fs";
import type { FuseRequest } from "@devplat/fuse-protocol";
import type { Contents } from "../contents.ts";
import type { Directories } from "../directories.ts";
import { FileError, StoreFault } from "../file-error.ts";
import type { KernelCache } from "../kernel-cache.ts";
import type { NamedNodes } from "../named-nodes.ts";
import { pathOf, type DirectoryNode, type FileContent, type FileNode } from "../nodes.ts";
import type { OpenAudit } from "../open-audit.ts";
import { DONE, type OpenHandle, type Reply } from "../reply.ts";
import type { Committer } from "./committer.ts";
import { Draft, NO_BASE, type DraftBase, type DraftTarget, type Place } from "./draft.ts";
import { FileBuffer } from "./file-buffer.ts";
import type { MemoryBudget } from "./memory-budget.ts";
import type { NewFiles } from "./new-files.ts";
import { releaseIfUnused, type Overlay } from "./overlay.ts";
import type { RemovedNames } from "./removed-names.ts";
import type { StaleRetries } from "./stale-retries.ts";
import type { Targets } from "./targets.ts";

/** Maximum document, in bytes. It is the limit of the store. */
export const MAX_DOCUMENT_BYTES = 1024 * 1024;

const { O_WRONLY, O_RDWR, O_TRUNC, O_EXCL } = constants;

/** An open file whose bytes can change. */
export interface DraftHandle extends OpenHandle {
  readonly kind: "draft";
  readonly node: FileNode;
  readonly draft: Draft;
  readonly mayWrite: boolean;
}

export interface WriteFilesParts {
  readonly contents: Contents;
  readonly directories: Directories;
  readonly nodes: NamedNodes;
  readonly overlay: Overlay;
  readonly removedNames: RemovedNames;
  readonly reopenings: StaleRetries;
  readonly targets: Targets;
  readonly committer: Committer;
  readonly newFiles: NewFiles;
  readonly kernelCache: Pick<KernelCache, "changed" | "renamed">;
  readonly audit: OpenAudit;
  /** Memory of files that are only in memory. */
  readonly memoryBudget: MemoryBudget;
  /** Memory of handles that write secrets. */
  readonly handleBudget: MemoryBudget;
  readonly nowMs: () => number;
}

/** Files that are written: each open of a secret has bytes of its own, and a file in memory has its bytes for all. */
export class WriteFiles {
  readonly #parts: WriteFilesParts;

  constructor(parts: WriteFilesParts) {
    this.#parts = parts;
  }

  /** Opens a file that is only in memory. @throws FileError */
  openInMemory(node: FileNode, flags: number, pid: number): Reply {
    // Its name leads to something else, which the kernel has to look up.
    if (node.draft?.isNamed !== true) return this.#lookUpAgain(node, pid);
    this.#parts.audit.opened(pathOf(node), pid);
    return { kind: "opened", handle: this.#handle(node, node.draft, flags), flags: 0 };
  }

  /**
   * Opens a secret or a field for writing.
   * @throws FileError ESTALE: the kernel looks the name up again, and gets a node that nobody else has open; others
   */
  async open(node: FileNode, flags: number, pid: number): Promise<Reply> {
    const { audit, handleBudget, kernelCache, reopenings, targets, nowMs } = this.#parts;
    const target = targets.of(node.source);
    if (node.draft !== undefined || node.isShared || (node.reservedFor ?? pid) !== pid)
      return this.#lookUpAgain(node, pid);
    node.reservedFor = pid;
    const { bytes, key, version = 0 } = await this.#newest(node, target, pid);
    if (key !== node.key) return this.#lookUpAgain(node, pid);
    const place = { directory: pathOf(node.parent), name: node.name };
    const buffer = new FileBuffer(bytes, MAX_DOCUMENT_BYTES, handleBudget);
    node.draft = new Draft(buffer, place, target, { version, bytes }, nowMs());
    reopenings.end(node.parent, node.name, pid);
    audit.opened(pathOf(node), pid);
    // Other programs get the stored version.
    void kernelCache.renamed(place.directory, place.name);
    return { kind: "opened", handle: this.#handle(node, node.draft, flags), flags: 0 };
  }

  /** @throws FileError; StoreFault */
  async create(parent: DirectoryNode, name: string, flags: number, pid: number): Promise<Reply> {
    const { directories, nodes, overlay, removedNames, audit, kernelCache, newFiles, reopenings, targets } =
      this.#parts;
    const place = { directory: pathOf(parent), name };
    if (directories.isRendered(parent, name)) throw new FileError("EACCES");
    const hidden = overlay.hidden(place);
    if (hidden === undefined && "node" in (await directories.find(parent, name, pid))) {
      if ((flags & O_EXCL) !== 0) throw new FileError("EEXIST");
      // Somebody else has created it since the look-up.
      reopenings.add(parent, name, pid);
      throw new FileError("ESTALE");
    }
    const draft = this.#newDraft(place, targets.ofNew(parent, name), hidden ?? NO_BASE);
    draft.isReplacement = draft.target !== undefined && removedNames.has(place);
    if (hidden === undefined) overlay.add(draft, place);
    else {
      // The handle writes the secret. Until it is stored, other programs get the stored version.
      overlay.show(place);
      void kernelCache.renamed(place.directory, name);
    }
    const node = nodes.inMemory(parent, name, draft);
    audit.opened(pathOf(node), pid);
    newFiles.changed(draft);
    return { kind: "created", node, handle: this.#handle(node, draft, flags) };
  }

  read({ draft }: DraftHandle, { offset, size }: Extract<FuseRequest, { operation: "read" }>): Reply {
    return { kind: "data", bytes: draft.buffer.read(offset, size) };
  }

  /** @throws FileError */
  write(
    { draft, mayWrite }: DraftHandle,
    { offset, data }: Extract<FuseRequest, { operation: "write" }>,
  ): Reply {
    if (!mayWrite) throw new FileError("EBADF");
    draft.buffer.write(offset, data);
    this.#changed(draft);
    return { kind: "length", length: data.length };
  }

  /** A descriptor was closed. New files are stored later. @throws FileError; StoreFault */
  async flush({ draft, mayWrite }: DraftHandle): Promise<Reply> {
    // A shell that redirects closes a second descriptor of the empty file first.
    const isStoredNow = !draft.isNamed || draft.isReplacement;
    if (mayWrite && isStoredNow && draft.size > 0) await this.#commit(draft);
    return DONE;
  }

  /** @throws FileError; StoreFault */
  async sync({ draft }: DraftHandle): Promise<Reply> {
    await this.#commit(draft);
    return DONE;
  }

  /** The last descriptor was closed, and nobody gets an error any more. */
  async release({ draft, mayWrite }: DraftHandle): Promise<Reply> {
    if (mayWrite) draft.writers--;
    if (mayWrite && draft.isNamed) this.#parts.newFiles.closed(draft);
    // Bytes can come after the last FLUSH, from mapped memory. An empty file is not stored.
    else if (mayWrite && draft.size > 0 && !draft.isRefused) await this.#commit(draft).catch(() => undefined);
    draft.handles--;
    releaseIfUnused(draft);
    return DONE;
  }

  /** Changes the size of a file. @throws FileError; StoreFault */
  async resize(node: FileNode, size: number): Promise<void> {
    const { directories, handleBudget, targets, nowMs } = this.#parts;
    if (node.draft !== undefined) {
      node.draft.buffer.resize(size);
      this.#changed(node.draft);
      return;
    }
    if (size === node.size) return;
    // Without an open file, the result is stored immediately.
    const target = targets.of(node.source);
    const { bytes, version = 0 } = (await directories.content(target)).value;
    const buffer = new FileBuffer(bytes, MAX_DOCUMENT_BYTES, handleBudget);
    try {
      buffer.resize(size);
      const place = { directory: pathOf(node.parent), name: node.name };
      const draft = new Draft(buffer, place, target, { version, bytes }, nowMs());
      this.#changed(draft);
      await this.#commit(draft);
    } finally {
      buffer.release();
    }
  }

  async #commit(draft: Draft): Promise<void> {
    if (draft.target === undefined || !draft.isUnsaved) return;
    await this.#parts.committer.commit(draft);
    // The kernel forgets the old version before the program goes on.
    await this.#parts.kernelCache.changed(draft.target.path);
  }

  #changed(draft: Draft): void {
    draft.changed(this.#parts.nowMs());
    this.#parts.newFiles.changed(draft);
  }

  #handle(node: FileNode, draft: Draft, flags: number): DraftHandle {
    const mayWrite = (flags & (O_WRONLY | O_RDWR)) !== 0;
    draft.handles++;
    if (mayWrite) draft.writers++;
    if ((flags & O_TRUNC) !== 0 && draft.size > 0) {
      draft.buffer.resize(0);
      this.#changed(draft);
    }
    return { kind: "draft", node, draft, mayWrite };
  }

  #newDraft(place: Place, target: DraftTarget | undefined, base: DraftBase): Draft {
    const { memoryBudget, nowMs } = this.#parts;
    const maxBytes = target === undefined ? Number.MAX_SAFE_INTEGER : MAX_DOCUMENT_BYTES;
    return new Draft(new FileBuffer(Buffer.alloc(0), maxBytes, memoryBudget), place, target, base, nowMs());
  }

  async #newest(node: FileNode, target: DraftTarget, pid: number): Promise<FileContent> {
    try {
      await this.#parts.contents.renewed(target.path);
      return (await this.#parts.directories.content(target)).value;
    } catch (error) {
      // It was removed: the kernel sees that when it looks the name up again.
      if (error instanceof StoreFault && error.code === "not_found") return this.#lookUpAgain(node, pid);
      throw error;
    }
  }

  #lookUpAgain({ parent, name }: FileNode, pid: number): never {
    this.#parts.reopenings.add(parent, name, pid);
    throw new FileError("ESTALE");
  }
}

import { constants } from "node:fs";
import type { FuseRequest } from "@devplat/fuse-protocol";
import type { MountReplies, MountRequest } from "../../channel/messages.ts";
import { Timers } from "../../timers.ts";
import { Contents } from "../contents.ts";
import { Directories } from "../directories.ts";
import { StoreFault } from "../file-error.ts";
import { KernelCache } from "../kernel-cache.ts";
import { NamedNodes } from "../named-nodes.ts";
import { NodeTable } from "../node-table.ts";
import { rootDirectory, type DirectoryNode, type FileNode, type MountNode } from "../nodes.ts";
import { OpenAudit } from "../open-audit.ts";
import { ReadVersions } from "../read-versions.ts";
import { RequestedNodes } from "../requested-nodes.ts";
import { Overlay } from "./overlay.ts";
import { StaleRetries } from "./stale-retries.ts";
import type { DraftHandle } from "./write-files.ts";
import { Writing } from "./writing.ts";

const PID = 7;

/** A store in memory whose responses a test can lose or refuse. */
export class MemoryStore {
  readonly secrets = new Map<string, { version: number; fields: string }>();
  /** Called before each request. It may throw. */
  before: (request: MountRequest) => void = () => undefined;
  /** Called after each request was done. It may throw. */
  after: (request: MountRequest) => void = () => undefined;

  async request<K extends MountRequest["kind"]>(
    request: Extract<MountRequest, { kind: K }>,
  ): Promise<MountReplies[K]> {
    await Promise.resolve();
    this.before(request);
    const reply = this.#reply(request);
    this.after(request);
    return reply as MountReplies[K];
  }

  #reply(request: MountRequest): MountReplies[MountRequest["kind"]] {
    switch (request.kind) {
      case "list":
        return this.#list(request.folder);
      case "read": {
        const found = this.#found(request.path);
        return { version: found.version, createdAt: found.version, fields: found.fields };
      }
      case "write": {
        const version = this.secrets.get(request.path)?.version ?? 0;
        if (version !== request.ifVersion) throw new StoreFault("version_conflict");
        this.secrets.set(request.path, { version: version + 1, fields: request.fields });
        return { version: version + 1 };
      }
      case "delete":
        this.#found(request.path);
        this.secrets.delete(request.path);
        return null;
      default:
        throw new StoreFault("not_rendered");
    }
  }

  #found(path: string): { version: number; fields: string } {
    const found = this.secrets.get(path);
    if (found === undefined) throw new StoreFault("not_found");
    return found;
  }

  #list(folder: string): string[] {
    const names = [...this.secrets.keys()]
      .filter((path) => path.startsWith(folder))
      .map((path) => path.slice(folder.length))
      .map((name) => (name.includes("/") ? name.slice(0, name.indexOf("/") + 1) : name));
    if (names.length === 0 && folder !== "") throw new StoreFault("not_found");
    return [...new Set(names)];
  }
}

/** The writing side over a store in memory, with a clock that a test moves. Its methods do what the kernel asks. */
export class WritingStand {
  readonly store = new MemoryStore();
  readonly writing: Writing;
  readonly overlay: Overlay;
  readonly owned = new Set<string>();
  /** Names that the kernel was told to look up again. */
  readonly readVersions = new ReadVersions();
  readonly expired: string[] = [];
  nowMs = 0;
  readonly #timers = new Timers(() => this.nowMs);
  readonly #directories: Directories;
  readonly #root: DirectoryNode;

  constructor(secrets: Record<string, string> = {}) {
    for (const [path, fields] of Object.entries(secrets))
      this.store.secrets.set(path, { version: 1, fields });
    this.#root = rootDirectory();
    const timers = this.#timers;
    const nodes = new NodeTable<MountNode>(
      this.#root,
      () => undefined,
      () => undefined,
    );
    const options = { ttlMs: 60_000, layout: "both" } as const;
    const contents = new Contents(this.store, timers, options, () => undefined);
    this.overlay = new Overlay(timers);
    const { overlay } = this;
    const reopenings = new StaleRetries(timers);
    const named = new NamedNodes(nodes, reopenings);
    const rendered = (): [] => [];
    const parts = { contents, nodes: named, timers, rendered, overlay, reopenings };
    this.#directories = new Directories(parts);
    const kernelCache = new KernelCache(
      this.#root,
      async (bytes) => void this.expired.push(bytes.toString("utf8", 32, 32 + bytes.readUInt32LE(24))),
      () => true,
    );
    this.writing = new Writing({
      ...parts,
      requests: this.store,
      directories: this.#directories,
      kernelCache,
      audit: new OpenAudit(() => undefined, timers),
      requested: new RequestedNodes(nodes),
      readVersions: this.readVersions,
      isOwned: (path) => this.owned.has(path),
      onChange: () => undefined,
      uid: 0,
      gid: 0,
      nowMs: () => this.nowMs,
    });
  }

  /** Moves the clock, runs what is due, and what follows from it. */
  async pass(ms: number): Promise<void> {
    this.nowMs += ms;
    this.#timers.runDue();
    await settled();
  }

  /** The fields in the store, as JSON. */
  stored(path: string): string | undefined {
    return this.store.secrets.get(path)?.fields;
  }

  async create(path: string, text?: string): Promise<DraftHandle> {
    const [parent, name] = await this.#place(path);
    const reply = await this.writing.changes.files.create(parent, name, constants.O_RDWR, PID);
    if (reply.kind !== "created") throw new Error(reply.kind);
    const handle = reply.handle as DraftHandle;
    if (text !== undefined) this.write(handle, text);
    return handle;
  }

  /** Opens for writing, as the kernel does: it looks the name up again after ESTALE. */
  async open(path: string, flags = constants.O_RDWR): Promise<DraftHandle> {
    const { files } = this.writing.changes;
    for (let tries = 1; ; tries++) {
      const node = await this.node(path);
      try {
        const reply = await (node.source.kind === "memory"
          ? files.openInMemory(node, flags, PID)
          : files.open(node, flags, PID));
        if (reply.kind !== "opened") throw new Error(reply.kind);
        return reply.handle as DraftHandle;
      } catch (error) {
        if (tries === 2 || (error as Error).message !== "ESTALE") throw error;
      }
    }
  }

  write(handle: DraftHandle, text: string, offset = 0): void {
    this.writing.changes.files.write(handle, { offset, data: Buffer.from(text) } as Extract<
      FuseRequest,
      { operation: "write" }
    >);
  }

  /** Replaces the text of a file, and closes it. @throws the error of the close */
  async replace(path: string, text: string): Promise<void> {
    const handle = await this.open(path, constants.O_WRONLY | constants.O_TRUNC);
    this.write(handle, text);
    await this.close(handle);
  }

  /** Writes a new file, and closes it. */
  async makeFile(path: string, text: string): Promise<void> {
    await this.close(await this.create(path, text));
  }

  /** @throws the error of the close */
  async close(handle: DraftHandle): Promise<void> {
    const { files } = this.writing.changes;
    try {
      await files.flush(handle);
    } finally {
      await files.release(handle);
    }
  }

  async sync(handle: DraftHandle): Promise<void> {
    await this.writing.changes.files.sync(handle);
  }

  /** The text of a name; undefined if the name does not exist. */
  async text(path: string): Promise<string | undefined> {
    const [parent, name] = await this.#place(path);
    const found = await this.#directories.find(parent, name, PID).catch((error: unknown) => {
      if (error instanceof StoreFault && error.code === "not_found") return { missingMs: 0 };
      throw error;
    });
    if (!("node" in found) || found.node.kind !== "file") return undefined;
    const { node } = found;
    if (node.draft !== undefined) return node.draft.buffer.copy().toString();
    return (await this.#directories.versionBytes(node, PID)).toString();
  }

  async names(path = ""): Promise<string[]> {
    const { value } = await this.#directories.items(await this.#directory(path));
    return [...value.keys()].toSorted();
  }

  async rename(from: string, to: string, flags = 0): Promise<void> {
    const [parent, name] = await this.#place(from);
    const [newParent, newName] = await this.#place(to);
    // The kernel looks both names up first.
    for (const [directory, each] of [
      [parent, name],
      [newParent, newName],
    ] as const)
      await this.#directories.find(directory, each, PID).catch(() => undefined);
    await this.#request({
      operation: "rename",
      header: header(parent),
      name: nameOf(name),
      newParent: newParent.id,
      newName: nameOf(newName),
      flags,
    });
    await settled();
  }

  async remove(path: string): Promise<void> {
    await this.#named("unlink", path);
  }

  async makeDirectory(path: string): Promise<void> {
    await this.#named("mkdir", path);
  }

  async removeDirectory(path: string): Promise<void> {
    await this.#named("rmdir", path);
  }

  async node(path: string): Promise<FileNode> {
    const [parent, name] = await this.#place(path);
    const found = await this.#directories.find(parent, name, PID);
    if (!("node" in found) || found.node.kind !== "file") throw new Error(`${path} is not a file`);
    return found.node;
  }

  async #named(operation: "unlink" | "mkdir" | "rmdir", path: string): Promise<void> {
    const [parent, name] = await this.#place(path);
    const place = { header: header(parent), name: nameOf(name) };
    await this.#request(
      operation === "mkdir" ? { operation, ...place, mode: 0, umask: 0 } : { operation, ...place },
    );
    await settled();
  }

  async #request(request: FuseRequest): Promise<void> {
    await this.writing.changes.handle(request);
  }

  async #place(path: string): Promise<[DirectoryNode, string]> {
    const at = path.lastIndexOf("/");
    return [await this.#directory(path.slice(0, Math.max(0, at))), path.slice(at + 1)];
  }

  async #directory(path: string): Promise<DirectoryNode> {
    let directory = this.#root;
    for (const name of path === "" ? [] : path.split("/")) {
      const found = await this.#directories.find(directory, name, PID);
      if (!("node" in found) || found.node.kind !== "directory")
        throw new Error(`${path} is not a directory`);
      directory = found.node;
    }
    return directory;
  }
}

/** Lets promises go on. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await Promise.resolve();
}

function header({ id }: DirectoryNode): FuseRequest["header"] {
  return { unique: 1n, nodeId: id, uid: 0, gid: 0, pid: PID };
}

function nameOf(text: string): { bytes: Buffer; text: string } {
  return { bytes: Buffer.from(text), text };
}

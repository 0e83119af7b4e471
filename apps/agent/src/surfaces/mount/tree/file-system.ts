import { constants } from "node:fs";
import { INIT_FLAGS, negotiate, type FileName, type FuseRequest } from "@devplat/fuse-protocol";
import type { Directories } from "./directories.ts";
import { FileError } from "./file-error.ts";
import type { HandleTable } from "./handle-table.ts";
import type { NodeTable } from "./node-table.ts";
import { sizeOf, type MountNode } from "./nodes.ts";
import type { DirectoryHandle, ReadHandle, Reading } from "./reading.ts";
import { readOnlyError } from "./read-only.ts";
import { DONE, type Reply } from "./reply.ts";
import type { RequestedNodes } from "./requested-nodes.ts";
import type { Changes } from "./writing/changes.ts";
import type { DraftHandle } from "./writing/write-files.ts";

/** Maximum data of one READ or WRITE, in bytes. */
export const MAX_WRITE_BYTES = 128 * 1024;
const BLOCK_BYTES = 4096;

export type MountHandle = ReadHandle | DirectoryHandle | DraftHandle;

export interface FileSystemParts {
  readonly nodes: NodeTable<MountNode>;
  readonly handles: HandleTable<MountHandle>;
  readonly directories: Directories;
  readonly requested: RequestedNodes;
  readonly reading: Reading;
  /** Undefined for a mount that nobody may write. */
  readonly changes: Changes | undefined;
}

/** Answers requests of the kernel. */
export class FileSystem {
  readonly #parts: FileSystemParts;

  constructor(parts: FileSystemParts) {
    this.#parts = parts;
  }

  /** @returns undefined for a request without a reply. @throws FileError; StoreFault; FuseProtocolError */
  handle(request: FuseRequest): Reply | Promise<Reply> | undefined {
    const { nodes, handles, reading, requested } = this.#parts;
    const { nodeId, pid } = request.header;
    switch (request.operation) {
      case "init": {
        const flags =
          INIT_FLAGS.asyncRead |
          INIT_FLAGS.atomicTruncate |
          INIT_FLAGS.bigWrites |
          INIT_FLAGS.readdirplus |
          INIT_FLAGS.readdirplusAuto |
          INIT_FLAGS.parallelDirectoryOperations;
        return { kind: "init", connection: negotiate(request, { flags, maxWriteBytes: MAX_WRITE_BYTES }) };
      }
      case "destroy":
        return DONE;
      case "lookup":
        return reading.lookup(requested.directory(nodeId), textOf(request.name), pid);
      case "forget":
        nodes.forget(nodeId, request.lookups);
        return undefined;
      case "batch-forget":
        for (const each of request.nodes) nodes.forget(each.nodeId, each.lookups);
        return undefined;
      case "getattr": {
        const node = requested.node(nodeId);
        return { kind: "attributes", node, size: node.kind === "file" ? sizeOf(node) : 0 };
      }
      case "open": {
        const node = requested.file(nodeId);
        if (node.source.kind === "memory")
          return this.#changes(request).files.openInMemory(node, request.flags, pid);
        if ((request.flags & (constants.O_WRONLY | constants.O_RDWR)) === 0) return reading.open(node, pid);
        return this.#changes(request).files.open(node, request.flags, pid);
      }
      case "read": {
        const handle = handles.get(request.handle);
        if (handle.kind === "directory") throw new FileError("EBADF");
        return handle.kind === "read"
          ? reading.read(handle, request)
          : this.#changes(request).files.read(handle, request);
      }
      case "write":
        return this.#changes(request).files.write(this.#draftHandle(request.handle), request);
      case "flush":
      case "fsync": {
        const handle = handles.get(request.handle);
        if (handle.kind !== "draft") return DONE;
        const { files } = this.#changes(request);
        return request.operation === "flush" ? files.flush(handle) : files.sync(handle);
      }
      case "opendir":
        return reading.openDirectory(requested.directory(nodeId));
      case "readdir":
      case "readdirplus": {
        const handle = handles.get(request.handle);
        if (handle.kind !== "directory") throw new FileError("EBADF");
        return reading.list(handle, request);
      }
      case "release":
      case "releasedir": {
        const handle = handles.remove(request.handle);
        nodes.close(handle.node);
        return handle.kind === "draft" ? this.#changes(request).files.release(handle) : DONE;
      }
      case "fsyncdir":
        return DONE;
      case "statfs":
        return { kind: "statfs", size: FILESYSTEM_SIZE };
      case "getxattr":
        return reading.extendedAttribute(requested.node(nodeId), request.name.text, request.size);
      case "listxattr":
        return reading.extendedAttributes(requested.node(nodeId), request.size);
      case "create":
      case "mknod":
      case "mkdir":
      case "unlink":
      case "rmdir":
      case "rename":
      case "link":
      case "symlink":
      case "setattr":
      case "setxattr":
      case "removexattr":
      case "fallocate":
        return this.#changes(request).handle(request);
      default:
        throw new FileError("ENOSYS");
    }
  }

  /** @throws FileError EROFS or EACCES on a mount that nobody may write */
  #changes(request: FuseRequest): Changes {
    const { changes } = this.#parts;
    if (changes === undefined) throw readOnlyError(this.#parts, request);
    return changes;
  }

  #draftHandle(id: bigint): DraftHandle {
    const handle = this.#parts.handles.get(id);
    if (handle.kind !== "draft") throw new FileError("EBADF");
    return handle;
  }
}

/** Nothing limits the space but the store. Tools that look for space before they write find some. */
const FILESYSTEM_SIZE = {
  blockSize: BLOCK_BYTES,
  blocks: 1 << 18,
  freeBlocks: 1 << 18,
  files: 1 << 18,
  freeFiles: 1 << 18,
  maxNameBytes: 255,
};

/** Names of secrets are text. @throws FileError ENOENT for other bytes */
function textOf({ text }: FileName): string {
  if (text === undefined) throw new FileError("ENOENT");
  return text;
}

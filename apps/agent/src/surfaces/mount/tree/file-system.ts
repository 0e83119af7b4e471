import { constants } from "node:fs";
import { INIT_FLAGS, negotiate, type FileName, type FuseRequest } from "@devplat/fuse-protocol";
import type { Directories } from "./directories.ts";
import { FileError } from "./file-error.ts";
import type { HandleTable } from "./handle-table.ts";
import type { NodeTable } from "./node-table.ts";
import type { DirectoryNode, FileNode, MountNode } from "./nodes.ts";
import type { DirectoryHandle, ReadHandle, Reading } from "./reading.ts";
import { DONE, type Reply } from "./reply.ts";

/** Maximum data of one READ or WRITE, in bytes. */
export const MAX_WRITE_BYTES = 128 * 1024;
const BLOCK_BYTES = 4096;

export type MountHandle = ReadHandle | DirectoryHandle;

export interface FileSystemParts {
  readonly nodes: NodeTable<MountNode>;
  readonly handles: HandleTable<MountHandle>;
  readonly directories: Directories;
  readonly reading: Reading;
}

/** Answers requests of the kernel. */
export class FileSystem {
  readonly #parts: FileSystemParts;

  constructor(parts: FileSystemParts) {
    this.#parts = parts;
  }

  /** @returns undefined for a request without a reply. @throws FileError; StoreFault; FuseProtocolError */
  handle(request: FuseRequest): Reply | Promise<Reply> | undefined {
    const { nodes, handles, reading } = this.#parts;
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
        return reading.lookup(this.#directory(nodeId), textOf(request.name));
      case "forget":
        nodes.forget(nodeId, request.lookups);
        return undefined;
      case "batch-forget":
        for (const each of request.nodes) nodes.forget(each.nodeId, each.lookups);
        return undefined;
      case "getattr": {
        const node = this.#node(nodeId);
        return { kind: "attributes", node, size: node.kind === "file" ? node.size : 0 };
      }
      case "open": {
        const node = this.#file(nodeId);
        if ((request.flags & (constants.O_WRONLY | constants.O_RDWR)) !== 0) throw this.#readOnly(request);
        return reading.open(node, pid);
      }
      case "read": {
        const handle = handles.get(request.handle);
        if (handle.kind !== "read") throw new FileError("EBADF");
        return reading.read(handle, request);
      }
      case "opendir":
        return reading.openDirectory(this.#directory(nodeId));
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
        return DONE;
      }
      case "flush":
      case "fsync":
      case "fsyncdir":
        return DONE;
      case "statfs":
        return { kind: "statfs", size: FILESYSTEM_SIZE };
      case "getxattr":
        return reading.extendedAttribute(this.#node(nodeId), request.name.text, request.size);
      case "listxattr":
        return reading.extendedAttributes(this.#node(nodeId), request.size);
      case "create":
      case "mknod":
      case "mkdir":
      case "unlink":
      case "rmdir":
      case "rename":
      case "link":
      case "symlink":
      case "setattr":
      case "write":
      case "setxattr":
      case "removexattr":
      case "fallocate":
        throw this.#readOnly(request);
      default:
        throw new FileError("ENOSYS");
    }
  }

  /** The error of a change. Rendered files can be changed nowhere. */
  #readOnly(request: FuseRequest): FileError {
    const { nodes, directories } = this.#parts;
    const isRendered = (id: bigint, name?: FileName): boolean => {
      const node = nodes.get(id);
      if (node?.kind !== "directory" || name?.text === undefined)
        return node?.kind === "file" && node.source.kind === "rendered";
      return directories.isRendered(node, name.text);
    };
    const { nodeId } = request.header;
    const places: boolean[] = [isRendered(nodeId, "name" in request ? request.name : undefined)];
    if (request.operation === "rename") places.push(isRendered(request.newParent, request.newName));
    return new FileError(places.includes(true) ? "EACCES" : "EROFS");
  }

  /** @throws FileError ESTALE: the kernel does not use a node that it has forgotten */
  #node(id: bigint): MountNode {
    const node = this.#parts.nodes.get(id);
    if (node === undefined) throw new FileError("ESTALE");
    return node;
  }

  #directory(id: bigint): DirectoryNode {
    const node = this.#node(id);
    if (node.kind !== "directory") throw new FileError("ENOTDIR");
    return node;
  }

  #file(id: bigint): FileNode {
    const node = this.#node(id);
    if (node.kind === "directory") throw new FileError("EISDIR");
    return node;
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

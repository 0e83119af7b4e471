import type { FileName, FuseRequest } from "@devplat/fuse-protocol";
import { FileError } from "../file-error.ts";
import { sizeOf, type MountNode } from "../nodes.ts";
import { DONE, type Reply } from "../reply.ts";
import type { RequestedNodes } from "../requested-nodes.ts";
import type { DirectoryChanges } from "./directory-changes.ts";
import type { Renames } from "./renames.ts";
import type { WriteFiles } from "./write-files.ts";

export interface ChangesParts {
  readonly files: WriteFiles;
  readonly directories: DirectoryChanges;
  readonly renames: Renames;
  readonly requested: RequestedNodes;
  /** Owner of all files. */
  readonly uid: number;
  readonly gid: number;
}

/** Requests of the kernel that change names and attributes. */
export class Changes {
  readonly files: WriteFiles;
  readonly #parts: ChangesParts;

  constructor(parts: ChangesParts) {
    this.files = parts.files;
    this.#parts = parts;
  }

  /** @throws FileError; StoreFault */
  async handle(request: FuseRequest): Promise<Reply> {
    const { files, directories, renames, requested } = this.#parts;
    const { nodeId, pid } = request.header;
    switch (request.operation) {
      case "create":
        return await files.create(requested.directory(nodeId), textOf(request.name), request.flags, pid);
      case "mkdir":
        return await directories.makeDirectory(requested.directory(nodeId), textOf(request.name), pid);
      case "rmdir":
        return await directories.removeDirectory(requested.directory(nodeId), textOf(request.name), pid);
      case "unlink":
        return await directories.removeFile(requested.directory(nodeId), textOf(request.name));
      case "rename": {
        const from = [requested.directory(nodeId), textOf(request.name)] as const;
        const to = [requested.directory(request.newParent), textOf(request.newName)] as const;
        await renames.rename(from, to, request.flags, pid);
        return DONE;
      }
      case "setattr":
        return await this.#setAttributes(requested.node(nodeId), request.change);
      case "setxattr":
      case "removexattr":
      case "fallocate":
        throw new FileError("EOPNOTSUPP");
      default:
        // Links and devices.
        throw new FileError("EPERM");
    }
  }

  async #setAttributes(
    node: MountNode,
    change: Extract<FuseRequest, { operation: "setattr" }>["change"],
  ): Promise<Reply> {
    const { files, uid, gid } = this.#parts;
    if ((change.uid ?? uid) !== uid || (change.gid ?? gid) !== gid) throw new FileError("EPERM");
    if (node.kind === "directory") return { kind: "attributes", node, size: 0 };
    if (change.size !== undefined) await files.resize(node, change.size);
    const time = change.modificationTime;
    if (node.draft !== undefined && time !== undefined)
      node.draft.modifiedMs =
        time === "now" ? Date.now() : time.seconds * 1000 + time.nanoseconds / 1_000_000;
    return { kind: "attributes", node, size: sizeOf(node) };
  }
}

/** Names of secrets are text. @throws FileError EINVAL for other bytes */
function textOf({ text }: FileName): string {
  if (text === undefined) throw new FileError("EINVAL");
  return text;
}

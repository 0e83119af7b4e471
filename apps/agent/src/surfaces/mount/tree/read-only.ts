import type { FileName, FuseRequest } from "@devplat/fuse-protocol";
import type { Directories } from "./directories.ts";
import { FileError } from "./file-error.ts";
import type { NodeTable } from "./node-table.ts";
import type { MountNode } from "./nodes.ts";

export interface ReadOnlyParts {
  readonly nodes: NodeTable<MountNode>;
  readonly directories: Directories;
}

/** The error of a change on a mount that nobody may write. Rendered files can be changed nowhere. */
export function readOnlyError({ nodes, directories }: ReadOnlyParts, request: FuseRequest): FileError {
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

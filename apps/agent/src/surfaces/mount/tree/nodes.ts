import { ROOT_ID, type Node } from "./node-table.ts";
import type { Draft } from "./writing/draft.ts";

/** Content of a directory of the mount. */
export type DirectoryPlace =
  /** A folder of the store: `""` for the root, else it ends in `/`. It may exist only for rendered files or in memory. */
  | { readonly kind: "folder"; readonly folder: string }
  /** The fields of a secret. */
  | { readonly kind: "fields"; readonly path: string };

export interface DirectoryNode extends Node {
  readonly kind: "directory";
  /** A rename changes the place and the name. */
  place: DirectoryPlace;
  /** Undefined for the root. */
  parent: DirectoryNode | undefined;
  name: string;
  /** Nodes that a lookup of the name gives now. An old version of a file is in no directory. */
  readonly children: Map<string, MountNode>;
}

/** The directory at the mountpoint. */
export function rootDirectory(): DirectoryNode {
  return {
    id: ROOT_ID,
    kind: "directory",
    place: { kind: "folder", folder: "" },
    parent: undefined,
    name: "",
    children: new Map(),
    lookups: 1n,
    opens: 0,
  };
}

/** Where the content of a file comes from. */
export type FileSource =
  | { readonly kind: "secret"; readonly path: string }
  | { readonly kind: "field"; readonly path: string; readonly field: string }
  /** Path below the mountpoint. */
  | { readonly kind: "rendered"; readonly path: string }
  /** A file that is only in memory. */
  | { readonly kind: "memory" };

/** Source of bytes that are not only in memory. */
export type StoredSource = Exclude<FileSource, { kind: "memory" }>;

/** The bytes of a file, at one moment. */
export interface FileContent {
  readonly bytes: Buffer;
  /** Distinguishes the versions. */
  readonly key: string;
  /** Milliseconds since the epoch. */
  readonly modifiedMs: number;
  readonly version: number | undefined;
}

/**
 * One version of a file, or the bytes of one handle that writes. The bytes of a version never change: after a change, a lookup of
 * the name gives another node.
 */
export interface FileNode extends Node {
  readonly kind: "file";
  /** Number of the inode that programs see. All nodes of a version have the same: vim compares it after it has opened a file. */
  readonly inode: bigint;
  /** A rename changes the source and the name. */
  source: FileSource;
  parent: DirectoryNode;
  name: string;
  /** Distinguishes the versions. */
  readonly key: string;
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly modifiedMs: number;
  /** Number of the version in the store; undefined for a rendered file. */
  readonly version: number | undefined;
  /** The bytes, when the node was opened for writing or is only in memory. */
  draft: Draft | undefined;
  /** A newer version is known to exist. A first open looks the name up again, also while the kernel still has it. */
  isReplaced: boolean;
  /** It was opened for reading, so that the kernel may have its pages. */
  isShared: boolean;
  /** Only this process opens it. Other processes look the name up again. */
  reservedFor: number | undefined;
}

export type MountNode = DirectoryNode | FileNode;

/** Size of a file as it is now, in bytes. */
export function sizeOf({ draft, size }: FileNode): number {
  return draft?.size ?? size;
}

/** Number of the inode that programs see. */
export function inodeOf(node: MountNode): bigint {
  return node.kind === "file" ? node.inode : node.id;
}

/** Path below the mountpoint, without a slash at either end. */
export function pathOf(node: MountNode): string {
  const names: string[] = [];
  for (let each: MountNode = node; each.parent !== undefined; each = each.parent) names.unshift(each.name);
  return names.join("/");
}

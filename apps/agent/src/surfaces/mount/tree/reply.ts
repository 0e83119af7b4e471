import type { Connection, FilesystemSize } from "@devplat/fuse-protocol";
import type { MountNode } from "./nodes.ts";

/** A node that the kernel gets to know, and how long it may use the name again without a lookup, in milliseconds. */
export interface NamedNode {
  readonly node: MountNode;
  readonly validMs: number;
}

/** One entry of a directory while it is read. Without `named`, the kernel looks up the name when it needs it. */
export interface ListedEntry {
  readonly name: string;
  readonly mode: number;
  readonly nextOffset: number;
  readonly named: NamedNode | undefined;
}

/** An open file or directory. */
export interface OpenHandle {
  readonly node: MountNode;
}

/** Result of a request. What it changes in the table of nodes and handles is changed when it is sent. */
export type Reply =
  | { readonly kind: "done" }
  | { readonly kind: "init"; readonly connection: Connection }
  | { readonly kind: "missing"; readonly validMs: number }
  | ({ readonly kind: "entry" } & NamedNode)
  | { readonly kind: "attributes"; readonly node: MountNode; readonly size: number }
  | { readonly kind: "opened"; readonly handle: OpenHandle; readonly flags: number }
  | { readonly kind: "created"; readonly node: MountNode; readonly handle: OpenHandle }
  | { readonly kind: "data"; readonly bytes: Buffer }
  | {
      readonly kind: "listing";
      readonly entries: readonly ListedEntry[];
      readonly size: number;
      readonly plus: boolean;
    }
  | { readonly kind: "length"; readonly length: number }
  | { readonly kind: "statfs"; readonly size: FilesystemSize };

export const DONE: Reply = { kind: "done" };

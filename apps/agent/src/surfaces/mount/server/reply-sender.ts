import { constants as fs } from "node:fs";
import {
  DirectoryWriter,
  ReplyWriter,
  type Entry,
  type FileAttributes,
  type Timestamp,
} from "@devplat/fuse-protocol";
import type { FuseDevice } from "../device/fuse-device.ts";
import type { MountHandle } from "../tree/file-system.ts";
import type { HandleTable } from "../tree/handle-table.ts";
import type { NodeTable } from "../tree/node-table.ts";
import { inodeOf, sizeOf, type FileNode, type MountNode } from "../tree/nodes.ts";
import type { NamedNode, Reply } from "../tree/reply.ts";

const BLOCK_BYTES = 4096;
const MS_PER_SECOND = 1000;
const NS_PER_MS = 1_000_000;
/** The attributes of a version never change, and those of a directory say little; in milliseconds. */
const ATTRIBUTES_VALID_MS = 60_000;

export interface ReplySenderParts {
  readonly device: Pick<FuseDevice, "write">;
  readonly nodes: NodeTable<MountNode>;
  readonly handles: HandleTable<MountHandle>;
  /** Owner of all files. */
  readonly uid: number;
  readonly gid: number;
  readonly mayWrite: boolean;
  /** Whether an enrolment owns a secret. */
  readonly isOwned: (path: string) => boolean;
  /** Time of the mount, in milliseconds since the epoch. */
  readonly mountedMs: number;
}

/** Writes replies to the device. With the reply, the kernel gets to know nodes and handles. */
export class ReplySender {
  readonly #parts: ReplySenderParts;
  readonly #writer = new ReplyWriter();
  readonly #listing = new DirectoryWriter();

  constructor(parts: ReplySenderParts) {
    this.#parts = parts;
  }

  /** @param errno positive error number (errno(3)) */
  fail(unique: bigint, errno: number): void {
    this.#write(this.#writer.error(unique, errno));
  }

  send(unique: bigint, reply: Reply): void {
    const { nodes, handles } = this.#parts;
    switch (reply.kind) {
      case "done":
        this.#write(this.#writer.done(unique));
        return;
      case "init":
        this.#write(this.#writer.init(unique, reply.connection));
        return;
      case "missing":
        this.#write(this.#writer.missing(unique, reply.validMs));
        return;
      case "entry":
        nodes.lookedUp(reply.node);
        if (!this.#write(this.#writer.entry(unique, this.#entry(reply)))) nodes.forget(reply.node.id, 1n);
        return;
      case "attributes":
        this.#write(
          this.#writer.attributes(unique, this.#attributes(reply.node, reply.size), validMsOf(reply.node)),
        );
        return;
      case "opened": {
        const id = handles.add(reply.handle as MountHandle);
        reply.handle.node.opens++;
        if (!this.#write(this.#writer.opened(unique, id, reply.flags))) nodes.close(handles.remove(id).node);
        return;
      }
      case "created": {
        const id = handles.add(reply.handle as MountHandle);
        nodes.lookedUp(reply.node);
        reply.node.opens++;
        this.#write(this.#writer.created(unique, this.#entry({ node: reply.node, validMs: 0 }), id, 0));
        return;
      }
      case "data":
        this.#write(this.#writer.dataHeader(unique, reply.bytes.length), reply.bytes);
        return;
      case "listing":
        this.#sendListing(unique, reply);
        return;
      case "length":
        this.#write(this.#writer.extendedAttributeSize(unique, reply.length));
        return;
      case "statfs":
        this.#write(this.#writer.statfs(unique, reply.size));
    }
  }

  /** The reply to an interrupted request is not sent. */
  discard(reply: Reply): void {
    const { nodes } = this.#parts;
    if (reply.kind === "entry") nodes.forget(reply.node.id, 0n);
    if (reply.kind === "listing")
      for (const { named } of reply.entries) if (named) nodes.forget(named.node.id, 0n);
  }

  #sendListing(unique: bigint, { entries, size, plus }: Extract<Reply, { kind: "listing" }>): void {
    const { nodes } = this.#parts;
    this.#listing.begin(unique, size);
    const sent: MountNode[] = [];
    let isFull = false;
    for (const { name, mode, nextOffset, named } of entries) {
      const item = { name, inode: named === undefined ? 1n : inodeOf(named.node), mode, nextOffset };
      isFull ||= plus ? !this.#listing.addPlus(item, named && this.#entry(named)) : !this.#listing.add(item);
      if (named === undefined) continue;
      if (isFull) nodes.forget(named.node.id, 0n);
      else {
        nodes.lookedUp(named.node);
        sent.push(named.node);
      }
    }
    if (!this.#write(this.#listing.finish())) for (const { id } of sent) nodes.forget(id, 1n);
  }

  #entry({ node, validMs }: NamedNode): Entry {
    return {
      nodeId: node.id,
      nameValidMs: validMs,
      attributesValidMs: validMsOf(node),
      attributes: this.#attributes(node, node.kind === "file" ? sizeOf(node) : 0),
    };
  }

  #attributes(node: MountNode, size: number): FileAttributes {
    const { uid, gid, mayWrite, mountedMs } = this.#parts;
    const isFile = node.kind === "file";
    const time = timestamp(isFile ? (node.draft?.modifiedMs ?? node.modifiedMs) : mountedMs);
    const isWritable = mayWrite && !(isFile && this.#isReadOnly(node));
    return {
      inode: inodeOf(node),
      size,
      accessTime: time,
      modificationTime: time,
      changeTime: time,
      mode: isFile ? fs.S_IFREG | (isWritable ? 0o600 : 0o400) : fs.S_IFDIR | (mayWrite ? 0o700 : 0o500),
      links: isFile ? 1 : 2,
      uid,
      gid,
      blockSize: BLOCK_BYTES,
    };
  }

  #isReadOnly({ source }: FileNode): boolean {
    if (source.kind === "memory") return false;
    return source.kind === "rendered" || this.#parts.isOwned(source.path);
  }

  /** @returns false if the kernel does not want the reply any more, because its caller was interrupted */
  #write(reply: Buffer, data?: Buffer): boolean {
    return this.#parts.device.write(reply, data);
  }
}

/** The kernel asks again for what a handle changes. */
function validMsOf(node: MountNode): number {
  return node.kind === "file" && node.draft !== undefined ? 0 : ATTRIBUTES_VALID_MS;
}

function timestamp(ms: number): Timestamp {
  const seconds = Math.floor(ms / MS_PER_SECOND);
  return { seconds, nanoseconds: Math.floor((ms - seconds * MS_PER_SECOND) * NS_PER_MS) };
}

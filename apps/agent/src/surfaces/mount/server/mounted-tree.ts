import type { MountSettings } from "../channel/messages.ts";
import type { FuseDevice } from "../device/fuse-device.ts";
import type { Timers } from "../timers.ts";
import { Contents } from "../tree/contents.ts";
import { Directories } from "../tree/directories.ts";
import { FileSystem, type MountHandle } from "../tree/file-system.ts";
import { HandleTable } from "../tree/handle-table.ts";
import { KernelCache } from "../tree/kernel-cache.ts";
import { NamedNodes } from "../tree/named-nodes.ts";
import { NodeTable } from "../tree/node-table.ts";
import { rootDirectory, type MountNode } from "../tree/nodes.ts";
import { OpenAudit } from "../tree/open-audit.ts";
import { ReadVersions } from "../tree/read-versions.ts";
import { Reading } from "../tree/reading.ts";
import { RequestedNodes } from "../tree/requested-nodes.ts";
import { Overlay } from "../tree/writing/overlay.ts";
import { StaleRetries } from "../tree/writing/stale-retries.ts";
import { Writing } from "../tree/writing/writing.ts";
import type { ChannelEnd } from "./channel-end.ts";
import { DaemonLink } from "./daemon-link.ts";
import { ReplySender } from "./reply-sender.ts";

export interface MountedTreeOptions {
  readonly channel: ChannelEnd;
  readonly device: FuseDevice;
  readonly timers: Timers;
  /** The settings now. `mayWrite` counts when the tree is made. */
  readonly settings: () => MountSettings;
  /** Writes a notification to the kernel. */
  readonly notify: (notification: Buffer) => Promise<void>;
  /** Whether the kernel can keep what is mounted below a name (7.38). */
  readonly canExpire: () => boolean;
  /** Called with the number of names of a folder or secret that no file can have. */
  readonly onOmitted: (path: string, count: number) => void;
  /** Called when the list of files that are not stored may have changed. */
  readonly onUnsaved: () => void;
}

/** The parts that answer the requests of the kernel. */
export interface MountedTree {
  readonly link: DaemonLink;
  readonly contents: Contents;
  readonly kernelCache: KernelCache;
  readonly writing: Writing;
  readonly fileSystem: FileSystem;
  readonly replies: ReplySender;
}

export function buildMountedTree(options: MountedTreeOptions): MountedTree {
  const { channel, device, timers } = options;
  const { cacheTtlMs: ttlMs, layout, mayWrite } = options.settings();
  const root = rootDirectory();
  const nodes = new NodeTable<MountNode>(
    root,
    (node) => {
      if (node.parent?.children.get(node.name) === node) node.parent.children.delete(node.name);
    },
    (node) => {
      if (node.parent?.children.has(node.name) === false) node.parent.children.set(node.name, node);
    },
  );
  const handles = new HandleTable<MountHandle>();
  const link = new DaemonLink((message) => channel.send(message), timers);
  const contents = new Contents(link, timers, { ttlMs, layout }, options.onOmitted);
  const kernelCache = new KernelCache(root, options.notify, options.canExpire);
  const rendered = (): MountSettings["rendered"] => options.settings().rendered;
  const isOwned = (path: string): boolean => options.settings().owned.includes(path);
  const overlay = new Overlay(timers);
  const reopenings = new StaleRetries(timers);
  const readVersions = new ReadVersions();
  const named = new NamedNodes(nodes, reopenings);
  const directories = new Directories({ contents, nodes: named, timers, rendered, overlay, reopenings });
  const audit = new OpenAudit((open) => channel.send({ kind: "opened", open }), timers);
  const reading = new Reading(directories, audit, rendered, reopenings, readVersions);
  const requested = new RequestedNodes(nodes);
  const owner = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
  const writing = new Writing({
    requests: link,
    contents,
    directories,
    nodes: named,
    overlay,
    reopenings,
    kernelCache,
    audit,
    requested,
    readVersions,
    timers,
    isOwned,
    onChange: options.onUnsaved,
    ...owner,
    nowMs: () => Date.now(),
  });
  const changes = mayWrite ? writing.changes : undefined;
  const fileSystem = new FileSystem({ nodes, handles, directories, requested, reading, changes });
  const replies = new ReplySender({
    device,
    nodes,
    handles,
    ...owner,
    isOwned,
    mayWrite,
    mountedMs: Date.now(),
  });
  return { link, contents, kernelCache, writing, fileSystem, replies };
}

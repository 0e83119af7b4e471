import { setImmediate as nextTurn } from "node:timers/promises";
import { messageOf } from "@devplat/base";
import {
  decodeRequest,
  FuseProtocolError,
  type FuseOperation,
  type FuseRequest,
} from "@devplat/fuse-protocol";
import { BRAND } from "../../../brand.ts";
import { AgentError, publicMessage } from "../../../errors.ts";
import type { DaemonMessage, MountSettings } from "../channel/messages.ts";
import { FuseDevice } from "../device/fuse-device.ts";
import { mountAt, readMounts } from "../device/mountinfo.ts";
import { findMounter, type Mounter } from "../device/mounter.ts";
import { prepareMountpoint, resolveMountpoint } from "../device/mountpoint.ts";
import { Poller } from "../device/poller.ts";
import { Contents } from "../tree/contents.ts";
import { Directories } from "../tree/directories.ts";
import { FileError } from "../tree/file-error.ts";
import { FileSystem, MAX_WRITE_BYTES, type MountHandle } from "../tree/file-system.ts";
import { HandleTable } from "../tree/handle-table.ts";
import { KernelCache } from "../tree/kernel-cache.ts";
import { NamedNodes } from "../tree/named-nodes.ts";
import { NodeTable, ROOT_ID } from "../tree/node-table.ts";
import type { DirectoryNode, MountNode } from "../tree/nodes.ts";
import { OpenAudit } from "../tree/open-audit.ts";
import { Reading } from "../tree/reading.ts";
import type { Reply } from "../tree/reply.ts";
import { ChannelEnd } from "./channel-end.ts";
import { DaemonLink } from "./daemon-link.ts";
import { ReplySender } from "./reply-sender.ts";
import { Overlay } from "../tree/writing/overlay.ts";
import { Reopenings } from "../tree/writing/reopenings.ts";
import { Writing } from "../tree/writing/writing.ts";
import { RequestedNodes } from "../tree/requested-nodes.ts";
import { Timers } from "../timers.ts";

/** Requests of the kernel that are answered before other work gets its turn. */
const REQUESTS_PER_TURN = 64;
/** Most answers from memory are there after so many turns of the promises. */
const PROMISE_TURNS = 24;
/** Requests that follow one another in this time are a series, in milliseconds. */
const SERIES_GAP_MS = 0.25;
/** Within a series, the thread looks for the next request for this time before it sleeps, in milliseconds. */
const SPIN_MS = 0.06;
/** Longest wait without a timer, in milliseconds. */
const IDLE_WAIT_MS = 3_600_000;
/** Wait while the daemon takes no bytes, in milliseconds. */
const OUTGOING_WAIT_MS = 20;
/** Wait while a notification is written, in milliseconds. */
const NOTIFY_WAIT_MS = 0.1;
/** Time in which new files are stored after the unmount, in milliseconds. */
const SETTLE_LIMIT_MS = 5000;

/**
 * Serves the mount in this process, until it is unmounted or the daemon ends.
 *
 * One thread waits in ppoll(2) for the kernel and the daemon, and answers without waiting for anything else. So a stall of the
 * daemon never delays what is in memory here.
 *
 * @param descriptor of the channel to the daemon
 */
export async function runMountServer(descriptor: number): Promise<void> {
  const channel = new ChannelEnd(descriptor);
  const settings = await firstSettings(channel);
  if (settings === undefined) return;
  let path: string;
  let device: FuseDevice;
  const mounter = await findMounter(settings.helper);
  try {
    path = await resolveMountpoint(settings.mountpoint);
    await prepareMountpoint(path);
    const options = { source: BRAND.folder, subtype: BRAND.command, maxReadBytes: MAX_WRITE_BYTES };
    device = new FuseDevice(await mounter.mount(path, options), MAX_WRITE_BYTES);
  } catch (error) {
    const hint = error instanceof AgentError ? error.hint : undefined;
    const isFinal = error instanceof AgentError && error.code === "mount_refused";
    channel.send({
      kind: "refused",
      message: error instanceof AgentError ? error.message : publicMessage(error),
      hint,
      isFinal,
    });
    return;
  }
  const own = mountAt(await readMounts(), path)?.device;
  const isUnmounted = await new MountServer(channel, device, settings).run();
  device[Symbol.dispose]();
  if (isUnmounted) channel.send({ kind: "unmounted" });
  // The daemon has ended, so this process cleans up after it. The next daemon may have mounted there already.
  else await removeFrom(path, own, mounter);
}

/** Removes the mounts of a device at a path, which may be in use. */
async function removeFrom(path: string, device: string | undefined, mounter: Mounter): Promise<void> {
  if (device === undefined) return;
  try {
    while (mountAt(await readMounts(), path)?.device === device) await mounter.unmount(path, { lazy: true });
  } catch {
    // The next daemon removes it.
  }
}

async function firstSettings(channel: ChannelEnd): Promise<MountSettings | undefined> {
  const poller = new Poller([channel.descriptor]);
  for (;;) {
    poller.wait(IDLE_WAIT_MS);
    const messages = channel.receive();
    if (messages === undefined) return undefined;
    for (const message of messages) if (message.kind === "settings") return message.settings;
    await nextTurn();
  }
}

/** Operations whose result the caller must get to know. */
const CHANGING: ReadonlySet<FuseOperation> = new Set([
  "create",
  "flush",
  "fsync",
  "mkdir",
  "release",
  "rename",
  "rmdir",
  "setattr",
  "unlink",
]);

/**
 * Time that an interrupted request has to end, in milliseconds. Timers of emacs and Go interrupt requests all the time, and programs
 * do not expect EINTR of stat(2). Ctrl-C ends a program that waits for a store after this time.
 */
const INTERRUPT_GRACE_MS = 1000;

class MountServer {
  readonly #channel: ChannelEnd;
  readonly #device: FuseDevice;
  readonly #timers = new Timers();
  readonly #link: DaemonLink;
  readonly #contents: Contents;
  readonly #kernelCache: KernelCache;
  readonly #fileSystem: FileSystem;
  readonly #replies: ReplySender;
  readonly #writing: Writing;
  /** Requests without a reply yet, by number. The kernel may interrupt them. */
  readonly #running = new Set<bigint>();
  /** Those of them that change something, and are completed also if the caller was interrupted. */
  readonly #changing = new Set<bigint>();
  /** Number of names that no file can have, of each folder and secret that was read. Those without one are not in it. */
  readonly #omitted = new Map<string, number>();
  #settings: MountSettings;
  /** The report that was sent last. */
  #reported = "";
  #minor = 0;
  #lastArrivalMs = Number.NEGATIVE_INFINITY;
  /** Whether the last request came shortly after the one before it. */
  #isSeries = false;
  /** Notifications that the kernel has not taken yet. */
  #notifying = 0;

  constructor(channel: ChannelEnd, device: FuseDevice, settings: MountSettings) {
    this.#channel = channel;
    this.#device = device;
    this.#settings = settings;
    const root: DirectoryNode = {
      id: ROOT_ID,
      kind: "directory",
      place: { kind: "folder", folder: "" },
      parent: undefined,
      name: "",
      children: new Map(),
      lookups: 1n,
      opens: 0,
    };
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
    const timers = this.#timers;
    this.#link = new DaemonLink((message) => channel.send(message), timers);
    this.#contents = new Contents(
      this.#link,
      timers,
      {
        ttlMs: settings.cacheTtlMs,
        layout: settings.layout,
      },
      (path, count) => this.#noteOmitted(path, count),
    );
    const notify = async (notification: Buffer): Promise<void> => {
      this.#notifying++;
      try {
        await device.notify(notification);
      } catch (error) {
        this.#report(error);
      } finally {
        this.#notifying--;
      }
    };
    this.#kernelCache = new KernelCache(root, notify, () => this.#minor >= 38);
    const rendered = (): MountSettings["rendered"] => this.#settings.rendered;
    const contents = this.#contents;
    const overlay = new Overlay(timers);
    const reopenings = new Reopenings(timers);
    const named = new NamedNodes(nodes, reopenings);
    const directories = new Directories({ contents, nodes: named, timers, rendered, overlay, reopenings });
    const audit = new OpenAudit((open) => channel.send({ kind: "opened", open }), timers);
    const reading = new Reading(directories, audit, rendered, reopenings);
    const requested = new RequestedNodes(nodes);
    const uid = process.geteuid?.() ?? 0;
    const gid = process.getegid?.() ?? 0;
    const isOwned = (path: string): boolean => this.#settings.owned.includes(path);
    this.#writing = new Writing({
      requests: this.#link,
      contents,
      directories,
      nodes: named,
      overlay,
      reopenings,
      kernelCache: this.#kernelCache,
      audit,
      requested,
      timers,
      isOwned,
      onChange: () => this.#sendReport(),
      uid,
      gid,
      nowMs: () => Date.now(),
    });
    const changes = settings.mayWrite ? this.#writing.changes : undefined;
    this.#fileSystem = new FileSystem({ nodes, handles, directories, requested, reading, changes });
    this.#replies = new ReplySender({
      device,
      nodes,
      handles,
      uid,
      gid,
      isOwned,
      mayWrite: settings.mayWrite,
      mountedMs: Date.now(),
    });
  }

  /** @returns whether the filesystem was unmounted. Otherwise the daemon has ended */
  async run(): Promise<boolean> {
    const poller = new Poller([this.#device.descriptor, this.#channel.descriptor]);
    for (;;) {
      // A thread that sleeps takes longer to wake up than to answer.
      if (!this.#isSeries || !poller.spin(SPIN_MS)) poller.wait(this.#waitMs());
      if (this.#channel.hasOutgoing) this.#channel.flush();
      if (poller.isReady(1)) {
        const messages = this.#channel.receive();
        if (messages === undefined) return false;
        for (const message of messages) this.#receive(message);
      }
      if (poller.isReady(0)) {
        this.#noteArrival();
        if (this.#serve() === "unmounted") {
          await this.#settle();
          return true;
        }
      }
      const isDue = this.#timers.runDue();
      // Answers from memory need only promises. A turn of Node's own loop takes much longer.
      for (let turn = 0; turn < PROMISE_TURNS && this.#running.size > 0; turn++) await Promise.resolve();
      // Promises and notifications go on in between.
      if (this.#running.size > 0 || this.#notifying > 0 || isDue || poller.isReady(1)) await nextTurn();
    }
  }

  /** Stores new files after the unmount, while the daemon still answers. */
  async #settle(): Promise<void> {
    const settled = new AbortController();
    void this.#writing.settle().then(() => settled.abort());
    const poller = new Poller([this.#channel.descriptor]);
    const endMs = this.#timers.now() + SETTLE_LIMIT_MS;
    for (await nextTurn(); !settled.signal.aborted && this.#timers.now() < endMs; await nextTurn()) {
      poller.wait(OUTGOING_WAIT_MS);
      if (this.#channel.hasOutgoing) this.#channel.flush();
      const messages = poller.isReady(0) ? this.#channel.receive() : [];
      if (messages === undefined) return;
      for (const message of messages) this.#receive(message);
    }
  }

  #noteArrival(): void {
    const now = performance.now();
    this.#isSeries = now - this.#lastArrivalMs < SERIES_GAP_MS;
    this.#lastArrivalMs = now;
  }

  #waitMs(): number {
    // A close waits until the kernel has taken the notification.
    if (this.#notifying > 0) return NOTIFY_WAIT_MS;
    const ms = this.#timers.untilNext() ?? IDLE_WAIT_MS;
    return this.#channel.hasOutgoing ? Math.min(ms, OUTGOING_WAIT_MS) : ms;
  }

  /** Answers the kernel's requests that are there. */
  #serve(): "unmounted" | undefined {
    for (let count = 0; count < REQUESTS_PER_TURN; count++) {
      const bytes = this.#device.read();
      if (bytes === undefined || bytes === "unmounted") return bytes;
      this.#answer(bytes);
    }
    return undefined;
  }

  #answer(bytes: Buffer): void {
    let unique = 0n;
    try {
      const request = decodeRequest(bytes);
      ({ unique } = request.header);
      if (request.operation === "interrupt") this.#interrupt(request.target);
      else this.#handle(request);
    } catch (error) {
      if (error instanceof FuseProtocolError) {
        if (error.unique !== undefined) this.#replies.fail(error.unique, error.errno);
      } else this.#fail(unique, error);
    }
  }

  #handle(request: FuseRequest): void {
    const { unique } = request.header;
    const reply = this.#fileSystem.handle(request);
    if (reply === undefined) return;
    if (!(reply instanceof Promise)) {
      if (reply.kind === "init") this.#begin(reply.connection.minor);
      this.#replies.send(unique, reply);
      return;
    }
    this.#running.add(unique);
    if (CHANGING.has(request.operation)) this.#changing.add(unique);
    reply.then(
      (value) => this.#finish(unique, value),
      (error: unknown) => {
        this.#changing.delete(unique);
        if (this.#running.delete(unique)) this.#fail(unique, error);
      },
    );
  }

  #begin(minor: number): void {
    this.#minor = minor;
    this.#channel.send({ kind: "mounted" });
  }

  #finish(unique: bigint, reply: Reply): void {
    this.#changing.delete(unique);
    if (this.#running.delete(unique)) this.#replies.send(unique, reply);
    else this.#replies.discard(reply);
  }

  #interrupt(target: bigint): void {
    if (this.#changing.has(target) || !this.#running.has(target)) return;
    this.#timers.after(INTERRUPT_GRACE_MS, () => {
      if (this.#running.delete(target)) this.#fail(target, new FileError("EINTR"));
    });
  }

  #fail(unique: bigint, error: unknown): void {
    if (!(error instanceof FileError)) this.#report(error);
    this.#replies.fail(unique, (error instanceof FileError ? error : new FileError("EIO")).errno);
  }

  #noteOmitted(path: string, count: number): void {
    if ((this.#omitted.get(path) ?? 0) === count) return;
    if (count === 0) this.#omitted.delete(path);
    else this.#omitted.set(path, count);
    this.#sendReport();
  }

  #sendReport(): void {
    const omittedNames = this.#omitted.values().reduce((sum, each) => sum + each, 0);
    const report = { omittedNames, unsaved: this.#writing.report() };
    const text = JSON.stringify(report);
    if (text === this.#reported) return;
    this.#reported = text;
    this.#channel.send({ kind: "report", report });
  }

  #report(error: unknown): void {
    this.#channel.send({ kind: "failure", message: messageOf(error) });
  }

  #receive(message: DaemonMessage): void {
    switch (message.kind) {
      case "reply":
      case "fault":
        this.#link.receive(message);
        return;
      case "changed":
        this.#contents.drop(message.path);
        void this.#kernelCache.changed(message.path);
        return;
      case "rendered":
        this.#contents.dropRendered();
        this.#kernelCache.renderedChanged();
        return;
      case "settings":
        this.#settings = message.settings;
        this.#omitted.clear();
        this.#sendReport();
        this.#contents.configure({ ttlMs: message.settings.cacheTtlMs, layout: message.settings.layout });
        void this.#kernelCache.changed("");
        for (const { path } of message.settings.rendered) this.#kernelCache.renderedAdded(path);
        return;
      case "settle":
        void this.#writing.settle().then(() => this.#channel.send({ kind: "settled" }));
        return;
      case "ping":
        this.#channel.send({ kind: "pong" });
    }
  }
}

import { setImmediate as nextTurn } from "node:timers/promises";
import { messageOf } from "@devplat/base";
import { decodeRequest, type FuseRequest } from "@devplat/fuse-protocol";
import type { DaemonMessage, MountSettings } from "../channel/messages.ts";
import type { FuseDevice } from "../device/fuse-device.ts";
import { Poller } from "../device/poller.ts";
import { Timers } from "../timers.ts";
import type { ChannelEnd } from "./channel-end.ts";
import { buildMountedTree, type MountedTree } from "./mounted-tree.ts";
import { OmittedNames } from "./omitted-names.ts";
import { RunningRequests } from "./running-requests.ts";

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
/** Version 7.38 of the protocol lets a name expire without removing what is mounted below it. */
const EXPIRING_MINOR = 38;

/**
 * Answers the kernel in one thread, which waits in ppoll(2) for the kernel and the daemon, and for nothing else. So a stall of
 * the daemon never delays what is in memory here.
 */
export class MountServer {
  readonly #channel: ChannelEnd;
  readonly #device: FuseDevice;
  readonly #timers = new Timers();
  readonly #tree: MountedTree;
  readonly #running: RunningRequests;
  readonly #omitted = new OmittedNames();
  #settings: MountSettings;
  /** The report that was sent last. */
  #reported = "";
  /** The kernel's version of the protocol. */
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
    this.#tree = buildMountedTree({
      channel,
      device,
      timers: this.#timers,
      settings: () => this.#settings,
      notify: async (notification) => this.#notify(notification),
      canExpire: () => this.#minor >= EXPIRING_MINOR,
      onOmitted: (path, count) => {
        if (this.#omitted.note(path, count)) this.#sendReport();
      },
      onUnsaved: () => this.#sendReport(),
    });
    this.#running = new RunningRequests(this.#tree.replies, this.#timers, (error) => this.#report(error));
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
    void this.#tree.writing.settle().then(() => settled.abort());
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

  async #notify(notification: Buffer): Promise<void> {
    this.#notifying++;
    try {
      await this.#device.notify(notification);
    } catch (error) {
      this.#report(error);
    } finally {
      this.#notifying--;
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
      if (request.operation === "interrupt") this.#running.interrupt(request.target);
      else this.#handle(request);
    } catch (error) {
      this.#running.fail(unique, error);
    }
  }

  #handle(request: FuseRequest): void {
    const { unique } = request.header;
    const reply = this.#tree.fileSystem.handle(request);
    if (reply === undefined) return;
    if (reply instanceof Promise) {
      this.#running.add(unique, request.operation, reply);
      return;
    }
    if (reply.kind === "init") {
      this.#minor = reply.connection.minor;
      this.#channel.send({ kind: "mounted" });
    }
    this.#tree.replies.send(unique, reply);
  }

  #sendReport(): void {
    const report = { omittedNames: this.#omitted.total, unsaved: this.#tree.writing.report() };
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
        this.#tree.link.receive(message);
        return;
      case "changed":
        this.#tree.contents.drop(message.path);
        void this.#tree.kernelCache.changed(message.path);
        return;
      case "rendered":
        this.#tree.contents.dropRendered();
        this.#tree.kernelCache.renderedChanged();
        return;
      case "settings":
        this.#settings = message.settings;
        this.#omitted.clear();
        this.#sendReport();
        this.#tree.contents.configure({
          ttlMs: message.settings.cacheTtlMs,
          layout: message.settings.layout,
        });
        void this.#tree.kernelCache.changed("");
        for (const { path } of message.settings.rendered) this.#tree.kernelCache.renderedAdded(path);
        return;
      case "settle":
        void this.#tree.writing.settle().then(() => this.#channel.send({ kind: "settled" }));
        return;
      case "ping":
        this.#channel.send({ kind: "pong" });
    }
  }
}

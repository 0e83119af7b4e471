import { backoffMs, messageOf, type Clock, type Logger } from "@devplat/base";
import { AgentError } from "../../errors.ts";
import type { StoreChanges } from "../../secrets/folder/store-changes.ts";
import type { FileOpen, MountReport, MountSettings } from "./channel/messages.ts";
import { Heartbeat } from "./heartbeat.ts";
import { MountChannel, type ServerNotice } from "./mount-channel.ts";
import { startMountProcess, type MountProcess } from "./mount-process.ts";
import type { MountRequests } from "./mount-requests.ts";
import { ChangeListeners } from "../../change-listeners.ts";

/** Time for the first answers of a new mount server, in milliseconds. */
const START_LIMIT_MS = 15_000;
/** Maximum number of files in an error. */
const MAX_NAMED = 5;
/** Time in which unsaved files are stored before the mount is removed, in milliseconds. */
const SETTLE_LIMIT_MS = 5000;
/** Time for the mount server to end after the unmount, in milliseconds. */
const END_LIMIT_MS = 1000;
/** Longest wait before a mount server that has mounted before is started again, in milliseconds. */
const MAX_PAUSE_MS = 500;

/** State of the mount as the daemon knows it. What is mounted, only the kernel tells. */
export type MountState =
  | { readonly state: "starting" }
  /** `problem`: the mount server does not respond. */
  | { readonly state: "mounted"; readonly problem?: string }
  /** Nothing can be mounted. `isFinal`: not before something at the mountpoint is changed. Otherwise it is tried again. */
  | {
      readonly state: "refused";
      readonly message: string;
      readonly hint: string | undefined;
      readonly isFinal: boolean;
    }
  /** A person has unmounted it. */
  | { readonly state: "unmounted" }
  /** The mount server has ended, and starts again. */
  | { readonly state: "restarting"; readonly reason: string };

/** Removes mounts. */
export interface Unmounter {
  /** Waits while files are open, up to a time. Then it hides the mount, and open files go on. Never throws. */
  unmount(mountpoint: string): Promise<void>;
  /** Removes the mount now. @throws AgentError `mount_failed` while files are open, unless `lazy` */
  remove(mountpoint: string, lazy: boolean): Promise<void>;
  /** Removes what a mount server has left that was killed. Never throws. */
  removeStale(mountpoint: string): Promise<void>;
}

export interface FilesystemMountParts {
  /** The program that serves, with its arguments. */
  readonly command: readonly string[];
  readonly requests: MountRequests;
  readonly changes: StoreChanges;
  readonly unmounter: Unmounter;
  readonly settings: () => MountSettings;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The mount: a process of its own that serves it, started again after it has died. */
export class FilesystemMount {
  readonly #parts: FilesystemMountParts;
  readonly #listeners = new ChangeListeners();
  readonly #end = new AbortController();
  #state: MountState = { state: "starting" };
  #report: MountReport = { omittedNames: 0, unsaved: [] };
  #channel: MountChannel | undefined;
  #settled: (() => void) | undefined;
  /** The mount server that ran last has mounted. */
  #hasMounted = false;
  #running: Promise<void> | undefined;

  constructor(parts: FilesystemMountParts) {
    this.#parts = parts;
  }

  get state(): MountState {
    return this.#state;
  }

  get report(): MountReport {
    return this.#report;
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** Mounts. Resolves when the mount is there, or cannot be for now. */
  async start(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { changes, requests } = this.#parts;
    changes.onChange(({ path }) => {
      this.#channel?.send({ kind: "changed", path });
      if (requests.rendersFrom(path)) this.renderedChanged();
    }, this.#end.signal);
    // Nothing listens to changes for a mount that has ended.
    this.#running = this.#run(resolve).finally(() => this.#end.abort());
    await promise;
  }

  /** Takes up other settings. The mountpoint stays. */
  configure(): void {
    this.#channel?.send({ kind: "settings", settings: this.#parts.settings() });
  }

  /** Rendered files may have other content now. */
  renderedChanged(): void {
    this.#channel?.send({ kind: "rendered" });
  }

  /** Resolves when the mount server has ended for good. */
  get ended(): Promise<void> {
    return this.#running ?? Promise.resolve();
  }

  /**
   * Stores what can be stored, and unmounts, because a person wants it. After a lazy unmount open files go on.
   *
   * @throws AgentError `mount_failed` while files are open, `mount_unsaved` if texts would be lost; neither if `lazy`
   */
  async unmount(lazy: boolean): Promise<void> {
    if (this.#state.state === "mounted") {
      if (this.#state.problem === undefined) await this.#settle();
      if (!lazy) this.#refuseLoss();
      await this.#parts.unmounter.remove(this.#parts.settings().mountpoint, lazy);
    } else await this.stop();
    this.#set({ state: "unmounted" });
  }

  /** Stores what can be stored, and unmounts. */
  async stop(): Promise<void> {
    if (this.#end.signal.aborted) return;
    this.#end.abort();
    await this.#settle();
    await this.#parts.unmounter.unmount(this.#parts.settings().mountpoint);
    // The server ends by itself, after it has stored what was written since, unless files are still open.
    await this.#endedWithin(END_LIMIT_MS);
    this.#channel?.close();
    await this.#running;
  }

  /** The last chance for new files that are only in memory. */
  async #settle(): Promise<void> {
    if (this.#state.state !== "mounted") return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#settled = resolve;
    this.#channel?.send({ kind: "settle" });
    await this.#endedWithin(SETTLE_LIMIT_MS, promise);
  }

  /** Waits for the end of the mount server, or for something else, up to a time. */
  async #endedWithin(ms: number, other?: Promise<void>): Promise<void> {
    const limit = new AbortController();
    const passed = this.#parts.clock.sleep(ms, limit.signal).catch(() => undefined);
    await Promise.race([passed, this.#running, ...(other === undefined ? [] : [other])]);
    limit.abort();
  }

  /** @throws AgentError `mount_unsaved` if there are texts that the store did not take */
  #refuseLoss(): void {
    const { unsaved } = this.#report;
    if (unsaved.length === 0) return;
    const named = unsaved.slice(0, MAX_NAMED).map(({ path }) => path);
    const more = unsaved.length > MAX_NAMED ? ` and ${unsaved.length - MAX_NAMED} more` : "";
    throw new AgentError(
      "mount_unsaved",
      `an unmount would lose what is not stored: ${named.join(", ")}${more}`,
      {
        hint: "Copy it out of the mount, or remove it there. A lazy unmount does not ask.",
      },
    );
  }

  /** Texts that the store did not take are gone with the mount. */
  #logUnsaved(): void {
    for (const { path, reason } of this.#report.unsaved)
      this.#parts.logger.warn(
        { path, reason },
        "a file of the mount was not stored, and is gone with the mount",
      );
    this.#report = { ...this.#report, unsaved: [] };
  }

  async #run(started: () => void): Promise<void> {
    const { clock, logger, unmounter, settings } = this.#parts;
    const { signal } = this.#end;
    await unmounter.removeStale(settings().mountpoint);
    for (let failures = 1; !signal.aborted; failures++) {
      this.#hasMounted = false;
      const reason = await this.#serve(started);
      this.#logUnsaved();
      started();
      const { state } = this.#state;
      if (signal.aborted || state === "unmounted" || (state === "refused" && this.#state.isFinal)) break;
      // Until then its folder is empty, and no program gets an error of the connection.
      await unmounter.removeStale(settings().mountpoint);
      if (state !== "refused") {
        logger.warn({ reason }, "the mount server has ended, and is started again");
        this.#set({
          state: "restarting",
          reason: `the mount server has ended and is started again: ${reason}`,
        });
      }
      const pause = backoffMs(failures, this.#hasMounted ? { maxMs: MAX_PAUSE_MS } : {});
      await clock.sleep(pause, signal).catch(() => undefined);
    }
  }

  /** Runs one mount server until it ends. @returns why it has ended */
  async #serve(started: () => void): Promise<string> {
    const { command, requests, logger, clock, settings } = this.#parts;
    let process: MountProcess;
    try {
      process = startMountProcess(command, logger);
    } catch (error) {
      return messageOf(error);
    }
    const begun = new AbortController();
    const ended = new AbortController();
    let frozen: string | undefined;
    const heartbeat = new Heartbeat({
      ping: () => channel.send({ kind: "ping" }),
      clock,
      onSilence: (isSilent) => this.#noteSilence(isSilent),
    });
    const channel = new MountChannel(process.channel, requests, (notice) => {
      if (notice.kind === "pong") heartbeat.answered();
      else this.#note(notice);
      if (notice.kind === "mounted" || notice.kind === "refused") started();
      if (notice.kind !== "mounted") return;
      begun.abort();
      void heartbeat.run(ended.signal).then((ms) => {
        if (ms === undefined) return;
        frozen = `it has not responded for ${ms / 1000} s`;
        process.kill();
      });
    });
    this.#channel = channel;
    channel.send({ kind: "settings", settings: settings() });
    void clock.sleep(START_LIMIT_MS, begun.signal).then(
      () => process.kill(),
      () => undefined,
    );
    const reason = await process.ended;
    begun.abort();
    ended.abort();
    this.#channel = undefined;
    return frozen ?? reason;
  }

  #noteSilence(isSilent: boolean): void {
    if (this.#state.state !== "mounted") return;
    this.#set(
      isSilent ? { state: "mounted", problem: "the mount server does not respond" } : { state: "mounted" },
    );
  }

  #note(notice: Exclude<ServerNotice, { kind: "pong" }>): void {
    const { logger } = this.#parts;
    switch (notice.kind) {
      case "mounted":
        this.#hasMounted = true;
        this.#set({ state: "mounted" });
        return;
      case "unmounted":
        if (!this.#end.signal.aborted && this.#state.state !== "unmounted") {
          logger.info({}, "the filesystem was unmounted by somebody else");
          this.#set({ state: "unmounted" });
        }
        return;
      case "refused": {
        const { message, hint, isFinal } = notice;
        const before = this.#state;
        if (before.state !== "refused" || before.message !== message) logger.error({ hint }, message);
        this.#set({ state: "refused", message, hint, isFinal });
        return;
      }
      case "opened":
        this.#logOpen(notice.open);
        return;
      case "report":
        this.#report = notice.report;
        this.#listeners.changed();
        return;
      case "failure":
        logger.warn({ reason: notice.message }, "a request of the kernel failed");
        return;
      case "settled":
        this.#settled?.();
    }
  }

  #logOpen({ path, pid, program, count, refused }: FileOpen): void {
    const { logger } = this.#parts;
    if (refused) logger.warn({ path, pid, program, count }, "a program may not open a file of the mount");
    else logger.info({ path, pid, program, count }, "a file of the mount was opened");
  }

  #set(state: MountState): void {
    this.#state = state;
    this.#listeners.changed();
  }
}

import type { Clock, Logger } from "@devplat/base";
import { SecretStoreError } from "@devplat/secret-store";
import { isStoreWide } from "../store-health.ts";
import type { CachedSecrets, SecretVersion } from "./cached-secrets.ts";
import type { StoreChanges } from "./store-changes.ts";
import { ChangeListeners } from "../../change-listeners.ts";

/** Maximum number of folders and of secrets that one look reads. Without it a large store would be read for minutes. */
export const MAX_FOLDERS = 500;
export const MAX_SECRETS = 2000;
/** Changes that arrive together are one look, in milliseconds. */
const SETTLE_MS = 250;

/** The secrets of a folder with their versions, at one moment. */
export interface FolderSnapshot {
  /** By path, sorted. */
  readonly secrets: ReadonlyMap<string, SecretVersion>;
  /**
   * Reasons why a secret or a folder (its path ends in `/`) could not be read, by path. If the store could not be asked,
   * `secrets` has what was known before. If the store has refused the path, it is not in `secrets`.
   */
  readonly faults: ReadonlyMap<string, SecretStoreError>;
  /** A limit has ended the look. */
  readonly isTruncated: boolean;
}

export interface SecretFolderParts {
  readonly secrets: CachedSecrets;
  readonly changes: StoreChanges;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface SecretFolderOptions {
  /** Paths of secrets, and of folders with everything below them. A folder ends in `/`; `""` is all secrets of the user. */
  readonly roots: readonly string[];
  /** Interval between looks while the store does not report changes, in milliseconds. */
  readonly pollMs: number;
}

const EMPTY: FolderSnapshot = { secrets: new Map(), faults: new Map(), isTruncated: false };

/** The secrets below some paths, with their versions. A fault of one secret does not hide another. */
export class SecretFolder {
  readonly #parts: SecretFolderParts;
  #pollMs: number;
  readonly #listeners = new ChangeListeners();
  #roots: readonly string[];
  #snapshot = EMPTY;
  #isDue = true;
  #wake: (() => void) | undefined;

  constructor(parts: SecretFolderParts, { roots, pollMs }: SecretFolderOptions) {
    this.#parts = parts;
    this.#roots = roots;
    this.#pollMs = pollMs;
  }

  /** The last result of {@link look}, without a request. */
  get snapshot(): FolderSnapshot {
    return this.#snapshot;
  }

  /** Takes other roots. Secrets that are no longer below one are dropped immediately. */
  setRoots(roots: readonly string[]): void {
    if (roots.join("\n") === this.#roots.join("\n")) return;
    this.#roots = roots;
    this.#replace(this.#snapshot);
    this.#plan();
  }

  /** Takes another interval. It counts from now. */
  setPollMs(pollMs: number): void {
    if (pollMs === this.#pollMs) return;
    this.#pollMs = pollMs;
    this.#plan();
  }

  /** Finds the versions of all secrets. @throws the reason of the signal; faults of the store are in the result */
  async look(signal: AbortSignal): Promise<FolderSnapshot> {
    this.#replace(await this.#walk(signal));
    return this.#snapshot;
  }

  /** Calls back when {@link snapshot} has changed until the signal fires. */
  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** Looks again after each change below a root, and from time to time while the store does not report changes. Never throws. */
  async follow(signal: AbortSignal): Promise<void> {
    const { secrets, changes, clock, logger } = this.#parts;
    this.#isDue = true;
    changes.onChange(({ path }) => {
      if (path === "" || this.#covers(path)) this.#plan();
    }, signal);
    while (!signal.aborted) {
      if (this.#isDue) {
        this.#isDue = false;
        await this.look(signal).catch((error: unknown) => {
          if (!signal.aborted) logger.warn({ err: error }, "cannot look at a folder of secrets");
        });
        continue;
      }
      const woken = await this.#pause(signal);
      if (woken) await clock.sleep(SETTLE_MS, signal).catch(() => undefined);
      else if (changes.state !== "connected") {
        // Entries from before say nothing about now.
        for (const root of this.#roots) secrets.dropBelow(root);
        this.#isDue = true;
      }
    }
  }

  /** Has {@link follow} look soon. */
  #plan(): void {
    this.#isDue = true;
    this.#wake?.();
  }

  /** @returns whether a change has ended it, before the time of the next look */
  async #pause(signal: AbortSignal): Promise<boolean> {
    const timer = new AbortController();
    const { promise, resolve } = Promise.withResolvers<true>();
    this.#wake = () => resolve(true);
    const limit = AbortSignal.any([signal, timer.signal]);
    const slept = this.#parts.clock.sleep(this.#pollMs, limit).then(
      () => false,
      () => false,
    );
    const woken = await Promise.race([promise, slept]);
    timer.abort();
    this.#wake = undefined;
    return woken;
  }

  #covers(path: string): boolean {
    return this.#roots.some((root) => path === root || (isFolder(root) && path.startsWith(root)));
  }

  async #walk(signal: AbortSignal): Promise<FolderSnapshot> {
    const { secrets: store } = this.#parts;
    const before = this.#snapshot;
    const secrets = new Map<string, SecretVersion>();
    const faults = new Map<string, SecretStoreError>();
    let folders = 0;
    let count = 0;
    const visit = async (path: string): Promise<void> => {
      try {
        if (!isFolder(path)) {
          if (++count <= MAX_SECRETS) secrets.set(path, await store.version(path, signal));
          return;
        }
        if (++folders > MAX_FOLDERS) return;
        const names = await store.list(path, signal);
        await Promise.all(names.map((name) => visit(`${path}${name}`)));
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof SecretStoreError)) throw error;
        if (error.code === "not_found") return;
        faults.set(path, error);
        if (!isStoreWide(error)) return;
        for (const [known, version] of before.secrets) {
          if (known === path || (isFolder(path) && known.startsWith(path))) secrets.set(known, version);
        }
      }
    };
    await Promise.all(this.#roots.map(visit));
    const sorted = [...secrets].toSorted(([a], [b]) => (a < b ? -1 : 1));
    return {
      secrets: new Map(sorted),
      faults,
      isTruncated: folders > MAX_FOLDERS || count > MAX_SECRETS,
    };
  }

  /** Takes a snapshot. The roots may be other ones since it was begun. */
  #replace({ secrets, faults, isTruncated }: FolderSnapshot): void {
    const next = {
      secrets: new Map([...secrets].filter(([path]) => this.#covers(path))),
      faults: new Map([...faults].filter(([path]) => this.#covers(path))),
      isTruncated,
    };
    const isSame = textOf(next) === textOf(this.#snapshot);
    this.#snapshot = next;
    if (!isSame) this.#listeners.changed();
  }
}

function isFolder(path: string): boolean {
  return path === "" || path.endsWith("/");
}

function textOf({ secrets, faults, isTruncated }: FolderSnapshot): string {
  return JSON.stringify([
    [...secrets],
    [...faults].map(([path, { message }]) => [path, message]),
    isTruncated,
  ]);
}

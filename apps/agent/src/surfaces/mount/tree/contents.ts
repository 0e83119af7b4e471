import { createHash } from "node:crypto";
import { BoundedMap } from "@devplat/base/bounded-map";
import { foldersAbove } from "../../../secrets/folder/folders-above.ts";
import type { MountRequest, MountReplies } from "../channel/messages.ts";
import type { Timers } from "../timers.ts";
import { StoreFault } from "./file-error.ts";
import { folderEntries, isFileName, type FolderEntries } from "./file-names.ts";
import { SecretContent } from "./secret-content.ts";

/** Maximum memory for contents that no open file uses, in bytes. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Memory of an entry besides its text, in bytes. */
const ENTRY_BYTES = 256;

/** Requests the daemon. It is the link, or a stand-in for it. */
export interface Requests {
  request<K extends MountRequest["kind"]>(
    request: Extract<MountRequest, { kind: K }>,
    signal?: AbortSignal,
  ): Promise<MountReplies[K]>;
}

export interface RenderedContent {
  readonly bytes: Buffer;
  /** Distinguishes contents. */
  readonly digest: string;
  /** Milliseconds since the epoch. */
  readonly changedAt: number;
}

/** Something of the store, and how long it may be used again. */
export interface Kept<Value> {
  readonly value: Value;
  /** Time at which it ends, by the clock of the timers, in milliseconds. */
  readonly untilMs: number;
}

interface Entry {
  readonly kept: Kept<unknown>;
  readonly fault: StoreFault | undefined;
  readonly bytes: number;
}

/** Called for each directory that is read: how many of its names no file can have. The path of a folder ends in `/`. */
export type OnOmitted = (path: string, count: number) => void;

export interface ContentsOptions {
  readonly ttlMs: number;
  readonly layout: "json" | "both";
}

/**
 * Listings, secrets and rendered files, each requested once for all callers and kept for a short time. That something
 * does not exist or is denied is kept too.
 */
export class Contents {
  readonly #requests: Requests;
  readonly #timers: Timers;
  readonly #onOmitted: OnOmitted;
  readonly #entries: BoundedMap<string, Entry>;
  readonly #running = new Map<string, Promise<Kept<unknown>>>();
  #options: ContentsOptions;
  /** Counts changes. A response to a request from before the last one may be out of date. */
  #changes = 0;
  #cleaning = false;

  constructor(requests: Requests, timers: Timers, options: ContentsOptions, onOmitted: OnOmitted) {
    this.#onOmitted = onOmitted;
    this.#requests = requests;
    this.#timers = timers;
    this.#options = options;
    this.#entries = new BoundedMap({
      max: MAX_BYTES,
      sizeOf: ({ bytes }: Entry) => bytes + ENTRY_BYTES,
      now: () => timers.now(),
    });
  }

  configure(options: ContentsOptions): void {
    this.#options = options;
    this.drop("");
  }

  /** The entries of a folder. @throws StoreFault; FileError */
  listing(folder: string): Promise<Kept<FolderEntries>> {
    return this.#get(`list ${folder}`, async () => {
      const names = await this.#requests.request({ kind: "list", folder });
      const entries = folderEntries(folder, names, this.#options.layout);
      this.#onOmitted(folder, entries.omitted);
      return [entries, names.reduce((sum, name) => sum + name.length, 0)];
    });
  }

  /** Time until which the failure of a listing is used again. */
  listingFailsUntil(folder: string): number {
    return this.#entries.get(`list ${folder}`)?.kept.untilMs ?? this.#timers.now();
  }

  /** The newest version of a secret. @throws StoreFault; FileError */
  secret(path: string): Promise<Kept<SecretContent>> {
    return this.#get(`read ${path}`, async () => {
      const content = new SecretContent(await this.#requests.request({ kind: "read", path }));
      const omitted = [...content.fields.keys()].filter((name) => !isFileName(name));
      this.#onOmitted(path, this.#options.layout === "both" ? omitted.length : 0);
      return [content, 2 * content.document.length];
    });
  }

  /** The newest version of a secret, asked for again. @throws StoreFault; FileError */
  renewed(path: string): Promise<Kept<SecretContent>> {
    const key = `read ${path}`;
    this.#drop((each) => each === key);
    return this.secret(path);
  }

  /** The content of a rendered file. @throws StoreFault; FileError */
  rendered(path: string): Promise<Kept<RenderedContent>> {
    return this.#get(`render ${path}`, async () => {
      const { content, changedAt } = await this.#requests.request({ kind: "render", path });
      const bytes = Buffer.from(content);
      const digest = createHash("sha256").update(bytes).digest("base64");
      return [{ bytes, digest, changedAt }, bytes.length];
    });
  }

  /** Drops what is kept of a secret, and the listings above it. With `""`, everything. */
  drop(path: string): void {
    const folders = new Set(foldersAbove(path));
    this.#drop(
      (key) =>
        path === "" || key === `read ${path}` || (key.startsWith("list ") && folders.has(key.slice(5))),
    );
  }

  dropRendered(): void {
    this.#drop((key) => key.startsWith("render "));
  }

  #drop(isOutdated: (key: string) => boolean): void {
    this.#changes++;
    for (const key of this.#running.keys()) if (isOutdated(key)) this.#running.delete(key);
    for (const [key] of this.#entries.entries()) if (isOutdated(key)) this.#entries.delete(key);
  }

  async #get<Value>(key: string, load: () => Promise<[Value, number]>): Promise<Kept<Value>> {
    const entry = this.#entries.get(key);
    if (entry?.fault !== undefined) throw entry.fault;
    if (entry !== undefined) return entry.kept as Kept<Value>;
    const running = this.#running.get(key);
    if (running !== undefined) return (await running) as Kept<Value>;
    const loading = this.#load(key, load);
    this.#running.set(key, loading);
    try {
      return await loading;
    } finally {
      if (this.#running.get(key) === loading) this.#running.delete(key);
    }
  }

  async #load<Value>(key: string, load: () => Promise<[Value, number]>): Promise<Kept<Value>> {
    const changes = this.#changes;
    const keep = (value: Value | undefined, fault: StoreFault | undefined, bytes: number): Kept<Value> => {
      const isCurrent = changes === this.#changes;
      const ttlMs = isCurrent ? this.#options.ttlMs : 0;
      const kept = { value: value as Value, untilMs: this.#timers.now() + ttlMs };
      if (isCurrent) this.#entries.set(key, { kept, fault, bytes }, { ttlMs });
      this.#clean();
      return kept;
    };
    try {
      const [value, bytes] = await load();
      return keep(value, undefined, bytes);
    } catch (error) {
      if (error instanceof StoreFault && error.isDecision) keep(undefined, error, 0);
      if (error instanceof StoreFault && error.code === "not_found")
        this.#onOmitted(key.slice(key.indexOf(" ") + 1), 0);
      throw error;
    }
  }

  /** Removes values from memory at their end, also if nobody asks for them again. */
  #clean(): void {
    if (this.#cleaning || this.#entries.size === 0) return;
    this.#cleaning = true;
    this.#timers.after(this.#options.ttlMs, () => {
      this.#cleaning = false;
      this.#entries.purge();
      this.#clean();
    });
  }
}

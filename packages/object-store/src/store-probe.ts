import { randomBytes } from "node:crypto";
import { rm, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ObjectStoreError } from "./errors.ts";
import type { GetResult, ObjectStore, WriteCondition } from "./object-store.ts";

/** One ability of a store, in the order in which the probe tries them. */
export type Ability =
  | "put"
  | "get"
  | "get with a range"
  | "get with If-None-Match"
  | "list"
  | "put with If-None-Match"
  | "put with If-Match"
  | "concurrent puts with If-Match"
  | "multipart upload"
  | "completion with If-None-Match"
  | "completion with If-Match"
  | "list of multipart uploads"
  | "delete with If-Match"
  | "delete";

/**
 * - `yes`: the store did what it had to.
 * - `no`: it ignored the request's condition, or does not have the operation.
 * - `denied`: the credentials lack {@link ProbeRow.permission}.
 * - `failed`: another fault, see {@link ProbeRow.reason}.
 */
export type ProbeResult = "yes" | "no" | "denied" | "failed";

export interface ProbeRow {
  readonly ability: Ability;
  readonly result: ProbeResult;
  /** Missing permission, such as `s3:DeleteObject`. */
  readonly permission: string | undefined;
  /** Reason of `no` and `failed`. */
  readonly reason: string | undefined;
  /** Error of `denied` and `failed`. */
  readonly error?: ObjectStoreError | undefined;
}

/** Result of {@link probeStore}. */
export interface StoreAbilities {
  readonly rows: readonly ProbeRow[];
  /** Whether objects can be read, written, listed and deleted at all. */
  readonly usable: boolean;
  /** Whether conditions on writes hold, also for concurrent writers and for multipart uploads. */
  readonly conditions: boolean;
  /** Permissions that the credentials lack. */
  readonly missingPermissions: readonly string[];
}

export interface ProbeOptions {
  /** Folder of the probe's objects in the bucket, such as `cache/v1`. Default: the root. */
  readonly prefix?: string;
  readonly signal?: AbortSignal;
}

const BASIC: ReadonlySet<Ability> = new Set<Ability>(["put", "get", "get with a range", "list", "delete"]);
const CONDITIONS: ReadonlySet<Ability> = new Set<Ability>([
  "put with If-None-Match",
  "put with If-Match",
  "concurrent puts with If-Match",
  "multipart upload",
  "completion with If-None-Match",
  "completion with If-Match",
]);
/** The last part of an upload may be small, and here it is the only one. */
const PART_BYTES = 1024;
const CONCURRENT_PUTS = 8;
/** ETag that no object has. */
const OTHER_ETAG = '"00000000000000000000000000000000"';

/** An ability that the store lacks: it did something else than what it had to do. */
class Lacking extends Error {}

/**
 * Finds out by trial which operations and conditions a store honours. It trusts no name. It writes below `prefix/probe-…`
 * and deletes what it wrote, as far as it may.
 *
 * Faults become rows. @throws the reason of the signal
 */
export async function probeStore(store: ObjectStore, options: ProbeOptions = {}): Promise<StoreAbilities> {
  const folder = await mkdtemp(join(tmpdir(), "object-store-probe-"));
  const probe = new StoreProbe(store, folder, options);
  try {
    return await probe.run();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

class StoreProbe {
  readonly #store: ObjectStore;
  readonly #file: string;
  readonly #base: string;
  readonly #signal: { readonly signal?: AbortSignal };
  readonly #rows: ProbeRow[] = [];

  constructor(store: ObjectStore, folder: string, { prefix, signal }: ProbeOptions) {
    this.#store = store;
    this.#file = join(folder, "parts");
    this.#base = `${prefix === undefined ? "" : `${prefix}/`}probe-${randomBytes(8).toString("hex")}`;
    this.#signal = signal === undefined ? {} : { signal };
  }

  async run(): Promise<StoreAbilities> {
    await writeFile(this.#file, Buffer.alloc(PART_BYTES));
    try {
      await this.#objects();
      // Without objects the other rows would say the same again.
      if (this.#result("put") === "yes") {
        await this.#conditions();
        await this.#multipart();
        await this.#deletes();
      }
    } finally {
      await this.#cleanUp();
    }
    const lacking = (abilities: ReadonlySet<Ability>): boolean =>
      [...abilities].some((ability) => this.#result(ability) !== "yes");
    return {
      rows: this.#rows,
      usable: !lacking(BASIC),
      conditions: !lacking(CONDITIONS),
      missingPermissions: [...new Set(this.#rows.flatMap(({ permission }) => permission ?? []))],
    };
  }

  async #objects(): Promise<void> {
    const key = `${this.#base}/object`;
    await this.#row("put", () => this.#put(key, "content"));
    if (this.#result("put") !== "yes") return;
    await this.#row("get", async () => {
      expect((await this.#read(key)) === "content", "it has other bytes");
    });
    await this.#row("get with a range", async () => {
      const found = await this.#store.get(key, { range: { first: 3, length: 2 }, ...this.#signal });
      expect((await textOf(found)) === "te", "it has other bytes");
    });
    await this.#row("get with If-None-Match", async () => {
      const { etag } = await this.#store.head(key, this.#signal);
      const found = await this.#store.get(key, { ifNoneMatch: etag, ...this.#signal });
      if (found.modified) await textOf(found);
      expect(!found.modified, "it sends an object that has not changed");
    });
    await this.#row("list", async () => {
      const { entries } = await this.#store.list(`${this.#base}/`, this.#signal);
      expect(entries.map((each) => each.key).join() === key, "the object is not in the list");
    });
  }

  async #conditions(): Promise<void> {
    await this.#row("put with If-None-Match", async () => {
      const key = `${this.#base}/absent`;
      await this.#put(key, "first", { ifAbsent: true });
      await this.#refuses(() => this.#put(key, "second", { ifAbsent: true }));
      expect((await this.#read(key)) === "first", "it replaced an object in spite of the condition");
    });
    await this.#row("put with If-Match", async () => {
      const key = `${this.#base}/matching`;
      const etag = await this.#put(key, "first");
      await this.#refuses(() => this.#put(key, "other", { ifMatch: OTHER_ETAG }));
      await this.#refuses(() => this.#put(`${key}-missing`, "other", { ifMatch: etag }));
      await this.#put(key, "second", { ifMatch: etag });
      await this.#refuses(() => this.#put(key, "third", { ifMatch: etag }));
      expect((await this.#read(key)) === "second", "it replaced an object in spite of the condition");
    });
    await this.#row("concurrent puts with If-Match", async () => {
      const key = `${this.#base}/contested`;
      const etag = await this.#put(key, "first");
      const results = await Promise.allSettled(
        Array.from({ length: CONCURRENT_PUTS }, (_, index) => this.#put(key, `${index}`, { ifMatch: etag })),
      );
      const won = results.filter(({ status }) => status === "fulfilled").length;
      expect(won < 2, `${won} of ${CONCURRENT_PUTS} writers won`);
      const other = results.find((each) => each.status === "rejected" && !isCondition(each.reason));
      if (other?.status === "rejected") throw other.reason;
      expect(won === 1, "no writer won");
    });
  }

  async #multipart(): Promise<void> {
    const key = `${this.#base}/large`;
    await this.#row("multipart upload", async () => {
      const { length } = await this.#upload(key);
      expect(length === PART_BYTES, "the object has another length");
    });
    if (this.#result("multipart upload") !== "yes") return;
    await this.#row("completion with If-None-Match", async () => {
      await this.#upload(`${key}-absent`, { ifAbsent: true });
      const { etag } = await this.#put(key, "small").then(() => this.#store.head(key, this.#signal));
      await this.#refuses(() => this.#upload(key, { ifAbsent: true }));
      await this.#hasStill(key, etag);
    });
    await this.#row("completion with If-Match", async () => {
      const { etag } = await this.#store.head(key, this.#signal);
      await this.#refuses(() => this.#upload(key, { ifMatch: OTHER_ETAG }));
      await this.#hasStill(key, etag);
      await this.#upload(key, { ifMatch: etag });
    });
    await this.#row("list of multipart uploads", async () => {
      await this.#store.listUploads(`${this.#base}/`, this.#signal);
    });
  }

  async #deletes(): Promise<void> {
    const key = `${this.#base}/object`;
    await this.#row("delete with If-Match", async () => {
      const { etag } = await this.#store.head(key, this.#signal);
      await this.#refuses(() => this.#store.delete(key, { ifMatch: OTHER_ETAG, ...this.#signal }));
      await this.#hasStill(key, etag);
      await this.#store.delete(key, { ifMatch: etag, ...this.#signal });
      expect(!(await this.#exists(key)), "the object is still there");
    });
    await this.#row("delete", async () => {
      const other = `${this.#base}/absent`;
      await this.#put(other, "content");
      await this.#store.delete(other, this.#signal);
      expect(!(await this.#exists(other)), "the object is still there");
    });
  }

  async #cleanUp(): Promise<void> {
    try {
      const { entries } = await this.#store.list(`${this.#base}/`, this.#signal);
      for (const { key } of entries) await this.#store.delete(key, this.#signal);
      const uploads = await this.#store.listUploads(`${this.#base}/`, this.#signal);
      for (const upload of uploads.entries) await this.#store.abortUpload(upload, this.#signal);
    } catch {
      // The rows say already which permission or operation is missing.
    }
  }

  async #row(ability: Ability, trial: () => Promise<unknown>): Promise<void> {
    this.#rows.push({ ability, ...(await this.#outcome(trial)) });
  }

  async #outcome(trial: () => Promise<unknown>): Promise<Omit<ProbeRow, "ability">> {
    try {
      await trial();
      return { result: "yes", permission: undefined, reason: undefined };
    } catch (error) {
      this.#signal.signal?.throwIfAborted();
      if (error instanceof Lacking) return { result: "no", permission: undefined, reason: error.message };
      if (!(error instanceof ObjectStoreError)) throw error;
      const { code, permission, message: reason } = error;
      if (code === "denied") return { result: "denied", permission, reason, error };
      return { result: code === "unsupported" ? "no" : "failed", permission: undefined, reason, error };
    }
  }

  #result(ability: Ability): ProbeResult | undefined {
    return this.#rows.find((row) => row.ability === ability)?.result;
  }

  async #put(key: string, text: string, condition?: WriteCondition): Promise<string> {
    const conditional = condition === undefined ? {} : { condition };
    return (await this.#store.put(key, Buffer.from(text), { ...conditional, ...this.#signal })).etag;
  }

  async #upload(key: string, condition?: WriteCondition): Promise<{ readonly length: number }> {
    const conditional = condition === undefined ? {} : { condition };
    await this.#store.putLarge(key, this.#file, { ...conditional, ...this.#signal, alwaysInParts: true });
    return await this.#store.head(key, this.#signal);
  }

  async #read(key: string): Promise<string> {
    return await textOf(await this.#store.get(key, this.#signal));
  }

  async #exists(key: string): Promise<boolean> {
    try {
      await this.#store.head(key, this.#signal);
      return true;
    } catch (error) {
      if (error instanceof ObjectStoreError && error.code === "missing") return false;
      throw error;
    }
  }

  async #hasStill(key: string, etag: string): Promise<void> {
    const isSame = (await this.#exists(key)) && (await this.#store.head(key, this.#signal)).etag === etag;
    expect(isSame, "it changed an object in spite of the condition");
  }

  /** The action must fail by its condition. @throws Lacking: it did not */
  async #refuses(action: () => Promise<unknown>): Promise<void> {
    try {
      await action();
    } catch (error) {
      if (isCondition(error)) return;
      throw error;
    }
    throw new Lacking("it ignores the condition");
  }
}

function isCondition(error: unknown): boolean {
  return error instanceof ObjectStoreError && error.code === "condition_failed";
}

function expect(condition: boolean, reason: string): void {
  if (!condition) throw new Lacking(reason);
}

async function textOf(found: GetResult): Promise<string> {
  return found.modified ? Buffer.concat((await found.body.toArray()) as Buffer[]).toString() : "";
}

import { TimeLimit, untilAborted, type Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import { ObjectStoreError, type ObjectStore } from "@devplat/object-store";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { ManifestPointer, ManifestPointerStore } from "../../../storage/coordination-store.ts";
import { newManifestName, type ObjectNames } from "../object-names.ts";
import { isMissing, manifestBytes, type FoundManifest, type ManifestFile } from "./manifest-file.ts";

/** Milliseconds for one response of the database. A request must not wait longer for it. */
const RESPONSE_MS = 2000;
/**
 * Milliseconds for which the object of the current pointer may be missing. A store may show a new object late. After them the
 * object counts as lost, and the next change replaces the manifest.
 */
const LOST_AFTER_MS = 60_000;
/** Repositories whose missing objects are remembered. */
const MAX_MISSING = 1024;
/** Reads of a pointer whose object another instance has replaced and deleted in between. */
const MAX_READS = 5;

export interface PointedManifestFileParts {
  readonly store: Pick<ObjectStore, "get" | "put" | "delete">;
  readonly names: ObjectNames;
  readonly pointers: ManifestPointerStore;
  /** Key of a repository in the common database. */
  readonly keyOf: (id: RepositoryId) => string;
  /** Id of this instance. */
  readonly writer: string;
  readonly clock: Pick<Clock, "sleep" | "monotonic">;
}

/**
 * Manifests in a bucket that ignores conditions. Each manifest is an object with a new name. A row of the common database
 * names the current one, and is replaced by compare-and-set. The version is the number of the row, which grows by one.
 */
export class PointedManifestFile implements ManifestFile {
  readonly #parts: PointedManifestFileParts;
  /** Since when objects of current pointers are missing, in monotonic time. */
  readonly #missing = new BoundedMap<string, { readonly name: string; readonly since: number }>({
    max: MAX_MISSING,
  });

  constructor(parts: PointedManifestFileParts) {
    this.#parts = parts;
  }

  async read(id: RepositoryId, known: string | undefined): Promise<FoundManifest> {
    const { store, names } = this.#parts;
    let gone: ManifestPointer | undefined;
    for (let reads = 1; ; reads++) {
      const pointer = await this.#pointer(id);
      if (pointer === undefined) return { kind: "absent" };
      const version = String(pointer.generation);
      if (version === known) return { kind: "same" };
      // Nobody deletes the object of the current pointer.
      if (gone?.name === pointer.name && this.#isLost(id, pointer.name))
        return { kind: "found", version, bytes: undefined };
      if (gone?.name === pointer.name || reads > MAX_READS) throw notThere();
      try {
        const found = await store.get(names.object(id, pointer.name), { traffic: "control" });
        if (found.modified) return { kind: "found", version, bytes: await manifestBytes(found) };
      } catch (error) {
        if (!isMissing(error)) throw error;
        gone = pointer;
      }
    }
  }

  async replace(
    id: RepositoryId,
    bytes: Buffer,
    { before, fence }: { readonly before: string | undefined; readonly fence: number },
  ): Promise<string> {
    const { store, names, pointers, keyOf, writer } = this.#parts;
    const old = await this.#pointer(id);
    if ((old === undefined ? undefined : String(old.generation)) !== before) throw changed();
    const generation = (old?.generation ?? 0) + 1;
    const name = newManifestName(generation, writer);
    try {
      await store.put(names.object(id, name), bytes, { traffic: "control" });
    } catch (error) {
      throw notWritten(error);
    }
    let isReplaced: boolean;
    try {
      isReplaced = await this.#inTime(
        pointers.replace(keyOf(id), { name, generation, fence }, old?.generation),
      );
    } catch (error) {
      // The object stays: the row may name it.
      throw databaseFailed(error, true);
    }
    // An object that cannot be deleted now is deleted by the collector.
    const unnamed = isReplaced ? old?.name : name;
    if (unnamed !== undefined) void store.delete(names.object(id, unnamed)).catch(() => undefined);
    if (!isReplaced) throw changed();
    return String(generation);
  }

  #isLost(id: RepositoryId, name: string): boolean {
    const now = this.#parts.clock.monotonic();
    const known = this.#missing.get(id.key);
    if (known?.name === name) return now - known.since >= LOST_AFTER_MS;
    this.#missing.set(id.key, { name, since: now });
    return false;
  }

  /** Name of the current manifest of a repository. @throws ObjectStoreError */
  async currentName(id: RepositoryId): Promise<string | undefined> {
    return (await this.#pointer(id))?.name;
  }

  async #pointer(id: RepositoryId): Promise<ManifestPointer | undefined> {
    const { pointers, keyOf } = this.#parts;
    try {
      return await this.#inTime(pointers.get(keyOf(id)));
    } catch (error) {
      throw databaseFailed(error, false);
    }
  }

  async #inTime<T>(response: Promise<T>): Promise<T> {
    using limit = new TimeLimit(this.#parts.clock, RESPONSE_MS);
    return await untilAborted(response, limit.signal);
  }
}

function notThere(): ObjectStoreError {
  return new ObjectStoreError(
    "store_failed",
    "Cannot read a manifest: the bucket does not have the object that the database names",
    { remedy: "retry" },
  );
}

/** Also an object that appears later is not a manifest, because no row names it. */
function notWritten(error: unknown): unknown {
  if (!(error instanceof ObjectStoreError) || !error.outcomeUnknown) return error;
  const { code, message, remedy } = error;
  return new ObjectStoreError(code, message, { remedy, cause: error });
}

function changed(): ObjectStoreError {
  return new ObjectStoreError("condition_failed", "Cannot write a manifest: another instance was faster", {
    remedy: "retry",
  });
}

function databaseFailed(cause: unknown, outcomeUnknown: boolean): ObjectStoreError {
  const message = "Cannot use the bucket: the database, which names its manifests, does not respond";
  return new ObjectStoreError("store_failed", message, { remedy: "retry", cause, outcomeUnknown });
}

import type { Clock } from "@devplat/base";
import { ObjectStoreError, type ListedObject, type ObjectStore } from "@devplat/object-store";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { FaultLog } from "../../fault-log.ts";
import type { ManifestStore } from "../manifest/manifest-store.ts";
import type { Manifest, ManifestContent, Tombstone } from "../manifest/manifest.ts";
import { namedObjects } from "../manifest/next-manifest.ts";
import { MANIFESTS_FOLDER, type ObjectNames } from "../object-names.ts";
import type { Maintainer } from "./maintainer.ts";

/** Milliseconds by the clock of the store for which an object without a name stays. Readers of an old manifest may need it. */
export const KEEP_MS = 24 * 60 * 60 * 1000;
/** Manifests after the one that dropped a name, before its object is deleted. */
const KEEP_GENERATIONS = 2;
/** Milliseconds between two runs. */
const INTERVAL_MS = 60 * 60 * 1000;
/** Objects for which one run writes tombstones. A tombstone takes about 120 bytes in the manifest. */
const MAX_ADDED = 2000;
/** Deletes at the same time. */
const PARALLEL = 4;
/** Pages of uploads that one run looks at. */
const MAX_PAGES = 100;
/** Folders of objects in the folder of a repository. */
const FOLDERS = ["packs/", "responses/"];
const SLICES = ".slices";

export interface OrphanCollectorParts {
  readonly store: Pick<ObjectStore, "head" | "delete" | "list" | "listUploads" | "abortUpload" | "now">;
  readonly names: ObjectNames;
  readonly manifests: ManifestStore;
  readonly epochs: { of(id: RepositoryId): number };
  readonly maintainer: Maintainer;
  /** Name of the object with the manifest. Undefined: the manifest has a name that never changes. */
  readonly manifestName?: ((id: RepositoryId) => Promise<string | undefined>) | undefined;
  /** Repositories whose objects are collected: the listed ones, and those that were listed once. @throws if they cannot be read */
  readonly repositories: () => Promise<Iterable<RepositoryId>>;
  readonly faults: Pick<FaultLog, "once">;
  readonly clock: Clock;
}

export interface OrphanCollectorOptions {
  /** Whether the store honours `If-Match` at a delete, as far as it was probed. Default: it does not. */
  readonly deletesWithCondition?: (() => boolean) | undefined;
}

/** Result of a run for one repository. */
export interface Collected {
  /** Names of deleted objects. */
  readonly deleted: readonly string[];
  /** Names of objects that no manifest names, and that got a tombstone. */
  readonly found: readonly string[];
}

const NOTHING: Collected = { deleted: [], found: [] };

/**
 * Deletes objects that no manifest names. First such an object gets a tombstone in the manifest. Its name is not used again
 * after that, so that an instance that was paused during an upload cannot name it later. After a day by the clock of the store
 * and two manifests the manifest is read again, and the object is deleted.
 */
export class OrphanCollector {
  readonly #parts: OrphanCollectorParts;
  readonly #options: OrphanCollectorOptions;

  constructor(parts: OrphanCollectorParts, options: OrphanCollectorOptions = {}) {
    this.#parts = parts;
    this.#options = options;
  }

  /** Collects every hour until the signal fires. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, faults } = this.#parts;
    while (!signal.aborted) {
      await clock.sleep(INTERVAL_MS, signal).catch(() => undefined);
      for (const id of await this.#repositories()) {
        if (signal.aborted) return;
        try {
          await this.collect(id, signal);
        } catch (error) {
          if (!signal.aborted) faults.once({ id }, error, "objects without a name cannot be deleted");
        }
      }
      try {
        if (!signal.aborted) await this.abortUploads(signal);
      } catch (error) {
        faults.once(undefined, error, "interrupted uploads cannot be removed from the bucket");
      }
    }
  }

  async #repositories(): Promise<Iterable<RepositoryId>> {
    try {
      return await this.#parts.repositories();
    } catch (error) {
      this.#parts.faults.once(undefined, error, "objects without a name cannot be deleted");
      return [];
    }
  }

  /**
   * Collects in one repository, if this instance maintains it.
   *
   * @throws ObjectStoreError; FenceLost; EpochChanged; ForeignManifest
   */
  async collect(id: RepositoryId, signal: AbortSignal): Promise<Collected> {
    const { maintainer, manifests, store } = this.#parts;
    const fence = await maintainer.mayMaintain(id);
    if (fence === undefined) return NOTHING;
    let manifest = await manifests.current(id, { signal });
    await this.#deleteOldManifests(id, signal);
    const found = await this.#addTombstones(id, manifest, fence, signal);
    const now = store.now();
    const isOld = ({ at }: Tombstone): boolean => now - at >= KEEP_MS;
    manifest = await manifests.current(id, { signal });
    if (manifest?.tombstones.some(isOld) !== true) return { deleted: [], found };
    const isDue = (each: Tombstone, generation: number): boolean =>
      isOld(each) && generation - each.generation >= KEEP_GENERATIONS;
    // A repository that nobody changes gets new manifests here.
    for (let missing = KEEP_GENERATIONS; missing > 0; missing--) {
      const { generation, tombstones } = manifest;
      if (tombstones.every((each) => !isOld(each) || isDue(each, generation))) break;
      await this.#update(id, fence, signal, (content) => ({ ...content }));
      manifest = await manifests.current(id, { signal });
      if (manifest === undefined) return { deleted: [], found };
    }
    const named = new Set(namedObjects(manifest));
    const { generation, tombstones: all } = manifest;
    const dead = all.filter((each) => isDue(each, generation) && !named.has(each.name));
    const deleted = dead.map(({ name }) => name);
    await this.#deleteAll(id, deleted, signal);
    const gone = new Set(deleted);
    await this.#update(id, fence, signal, (content) => {
      const tombstones = content.tombstones.filter(({ name }) => !gone.has(name));
      return tombstones.length === content.tombstones.length ? content : { ...content, tombstones };
    });
    return { deleted, found };
  }

  /** Removes the parts of uploads that were interrupted a day ago. @returns their number @throws ObjectStoreError */
  async abortUploads(signal: AbortSignal): Promise<number> {
    const { store, names } = this.#parts;
    let count = 0;
    try {
      // A store may refuse the second page. The next first page has other uploads, because the old ones are gone.
      for (let page = 0; page < MAX_PAGES; page++) {
        const { entries } = await store.listUploads(names.host, { signal });
        const old = entries.filter(
          ({ startedAt }) => startedAt !== undefined && store.now() - startedAt >= KEEP_MS,
        );
        for (const upload of old) await store.abortUpload(upload, { signal });
        count += old.length;
        if (old.length === 0) break;
      }
    } catch (error) {
      if (!(error instanceof ObjectStoreError) || error.code !== "unsupported") throw error;
    }
    return count;
  }

  /** Writes tombstones for old objects that no manifest names: those of killed uploads. @returns their names */
  async #addTombstones(
    id: RepositoryId,
    manifest: Manifest | undefined,
    fence: number,
    signal: AbortSignal,
  ): Promise<string[]> {
    const { store } = this.#parts;
    const known = knownNames(manifest);
    const found = new Set<string>();
    for await (const { key, lastModified } of this.#list(id, FOLDERS, signal)) {
      const name = key.endsWith(SLICES) ? key.slice(0, -SLICES.length) : key;
      if (lastModified === undefined || store.now() - lastModified < KEEP_MS || known.has(name)) continue;
      found.add(name);
      if (found.size >= MAX_ADDED) break;
    }
    if (found.size === 0) return [];
    const generation = (manifest?.generation ?? 0) + 1;
    let added: string[] = [];
    await this.#update(id, fence, signal, (content) => {
      // Another instance may have named some of them since the manifest was read.
      added = [...found.difference(knownNames(content))];
      if (added.length === 0) return content;
      const at = Math.trunc(store.now());
      return {
        ...content,
        tombstones: [...content.tombstones, ...added.map((name) => ({ name, generation, at }))],
      };
    });
    return added;
  }

  /** Deletes manifests that were replaced, or never named, by instances that were killed. */
  async #deleteOldManifests(id: RepositoryId, signal: AbortSignal): Promise<void> {
    const { store, names, manifestName } = this.#parts;
    const old: string[] = [];
    for await (const { key, lastModified } of this.#list(id, [MANIFESTS_FOLDER], signal))
      if (lastModified !== undefined && store.now() - lastModified >= KEEP_MS) old.push(key);
    if (old.length === 0) return;
    // Read after the list: what is current then, and old, is in the list.
    const current = await manifestName?.(id);
    if (current === undefined) return;
    for (const name of old) if (name !== current) await this.#delete(names.object(id, name), signal);
  }

  async *#list(
    id: RepositoryId,
    folders: readonly string[],
    signal: AbortSignal,
  ): AsyncGenerator<ListedObject, void> {
    const { store, names } = this.#parts;
    const folder = names.folder(id);
    for (const each of folders) {
      let from: string | undefined;
      do {
        const page = await store.list(folder + each, { signal, ...(from !== undefined && { from }) });
        for (const entry of page.entries) yield { ...entry, key: entry.key.slice(folder.length) };
        from = page.next;
      } while (from !== undefined);
    }
  }

  async #deleteAll(id: RepositoryId, objects: readonly string[], signal: AbortSignal): Promise<void> {
    const { names } = this.#parts;
    const keys = objects.flatMap((name) => [names.slices(id, name), names.object(id, name)]);
    for (let at = 0; at < keys.length; at += PARALLEL) {
      signal.throwIfAborted();
      await Promise.all(keys.slice(at, at + PARALLEL).map(async (key) => this.#delete(key, signal)));
    }
  }

  async #delete(key: string, signal: AbortSignal): Promise<void> {
    const { store } = this.#parts;
    try {
      const condition =
        this.#options.deletesWithCondition?.() === true
          ? { ifMatch: (await store.head(key, { signal })).etag }
          : {};
      await store.delete(key, { signal, ...condition });
    } catch (error) {
      if (!(error instanceof ObjectStoreError) || error.code !== "missing") throw error;
    }
  }

  async #update(
    id: RepositoryId,
    fence: number,
    signal: AbortSignal,
    change: (content: ManifestContent) => ManifestContent,
  ): Promise<void> {
    const { manifests, epochs } = this.#parts;
    await manifests.update(id, { epoch: epochs.of(id), fence, signal }, change);
  }
}

function knownNames(content: ManifestContent | undefined): Set<string> {
  if (content === undefined) return new Set();
  return new Set([...namedObjects(content), ...content.tombstones.map(({ name }) => name)]);
}

import type { Clock } from "@devplat/base";
import type { PackFileKind, SnapshotPack } from "@devplat/git-mirror";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { ManifestPack, StoredObject, Tombstone } from "../manifest/manifest.ts";

/**
 * Milliseconds after an upload in which its objects may be named. The collector takes an older object without a name for one
 * of a killed upload: this is half of the time that it waits.
 */
const MAX_UNNAMED_MS = 12 * 60 * 60 * 1000;
/** The pack comes last, because it takes longest. */
const ORDER: readonly PackFileKind[] = ["idx", "rev", "bitmap", "graph", "pack"];

/** Writes immutable objects, with their slice lists. */
export interface ObjectTarget {
  upload(id: RepositoryId, name: string, path: string, signal: AbortSignal): Promise<StoredObject>;
}

export interface PackUploadsParts {
  readonly target: ObjectTarget;
  /** Makes a name for the files of a pack, without extension. */
  readonly newName: (pack: string) => string;
  readonly clock: Pick<Clock, "monotonic">;
}

interface Uploaded {
  readonly entry: ManifestPack;
  /** Monotonic time of the beginning of its upload. */
  readonly since: number;
}

/** Uploads of packs that no manifest names yet. A pack that was uploaded before a failure is not uploaded again. */
export class PackUploads {
  readonly #parts: PackUploadsParts;
  /** By repository and pack. */
  readonly #uploaded = new Map<string, Map<string, Uploaded>>();

  constructor(parts: PackUploadsParts) {
    this.#parts = parts;
  }

  /** @throws ObjectStoreError, a system error */
  async upload(id: RepositoryId, pack: SnapshotPack, signal: AbortSignal): Promise<ManifestPack> {
    const known = this.find(id, pack.name);
    if (known !== undefined) return known;
    const { target, newName, clock } = this.#parts;
    const since = clock.monotonic();
    const name = newName(pack.name);
    const files: Partial<Record<PackFileKind, StoredObject>> = {};
    for (const kind of ORDER) {
      const path = pack.files[kind];
      if (path !== undefined) files[kind] = await target.upload(id, `${name}.${kind}`, path, signal);
    }
    const entry = { pack: pack.name, files };
    const uploaded = this.#uploaded.get(id.key) ?? new Map<string, Uploaded>();
    this.#uploaded.set(id.key, uploaded.set(pack.name, { entry, since }));
    return entry;
  }

  /** A pack that was uploaded a short time ago, and may be named in a manifest. */
  find(id: RepositoryId, pack: string): ManifestPack | undefined {
    const uploaded = this.#uploaded.get(id.key)?.get(pack);
    if (uploaded === undefined) return undefined;
    const isRecent = this.#parts.clock.monotonic() - uploaded.since < MAX_UNNAMED_MS;
    return isRecent ? uploaded.entry : undefined;
  }

  /** Forgets uploads whose objects the collector is about to delete. A name of a tombstone is never used again. */
  forgetDead(id: RepositoryId, tombstones: readonly Tombstone[]): void {
    const dead = new Set(tombstones.map(({ name }) => name));
    const uploaded = this.#uploaded.get(id.key);
    for (const [pack, { entry }] of uploaded ?? []) {
      if (Object.values(entry.files).some(({ name }) => dead.has(name))) uploaded?.delete(pack);
    }
  }

  /** Forgets uploads after a manifest names them, or after a purge. */
  forget(id: RepositoryId): void {
    this.#uploaded.delete(id.key);
  }
}

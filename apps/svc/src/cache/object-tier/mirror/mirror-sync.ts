import type { Clock } from "@devplat/base";
import type { Mirror, MirrorSnapshot } from "@devplat/git-mirror";
import type { Ref } from "@devplat/git-store";
import { ObjectStoreError } from "@devplat/object-store";
import type { RepositoryId } from "../../../access/repository-id.ts";
import { FenceLost, type ManifestStore } from "../manifest/manifest-store.ts";
import type { Manifest, ManifestContent, ManifestPack } from "../manifest/manifest.ts";
import { MergeBases } from "./merge-bases.ts";
import { downloadPacks, type ObjectSource } from "./pack-download.ts";
import type { PackUploads } from "./pack-upload.ts";
import { bytesOf, isSamePacks, namesOf, replacedPacks } from "./shared-packs.ts";
import { isSameRefs, mergeSharedRefs, youngRefs } from "./shared-refs.ts";
import { SharedState } from "./shared-state.ts";

/** Tries of a push while other instances push too. Each round one of them succeeds. */
const MAX_TRIES = 10;

export interface MirrorSyncParts {
  readonly mirrors: { of(id: RepositoryId): Pick<Mirror, "sharing"> };
  readonly manifests: ManifestStore;
  readonly source: ObjectSource;
  readonly uploads: PackUploads;
  /** The known epoch of a repository. */
  readonly epochs: { of(id: RepositoryId): number };
  /** Refs that the code host showed recently. */
  readonly shown: (id: RepositoryId) => Iterable<Ref>;
  /** Milliseconds for which objects of dropped refs are retained. */
  readonly pruneAfterMs: number;
  readonly clock: Pick<Clock, "now">;
}

export interface PullOptions {
  readonly signal: AbortSignal;
  /** See ManifestStore.current. Default 0. */
  readonly maxAgeMs?: number;
  /** Called before the transfer with the bytes of all files, and then with those of each piece. */
  readonly progress?: { begin(bytes: number): void; add(bytes: number): void };
}

export interface PullResult {
  /** Undefined: there is none that can be used. */
  readonly manifest: Manifest | undefined;
  /** Whether the mirror has packs or refs that it did not have. */
  readonly changed: boolean;
}

/** The mirror cannot have what the manifest names. */
export class ManifestUnusable extends Error {
  constructor(reason: string) {
    super(`Cannot bring the mirror up to date from the bucket: ${reason}`);
    this.name = "ManifestUnusable";
  }
}

/**
 * Exchange of packs and refs between mirrors and manifests. The rule that keeps every manifest complete is in decision 0059: an
 * instance writes exactly the packs and refs of its mirror, which is complete, and only over a manifest whose packs and refs it
 * has adopted.
 */
export class MirrorSync {
  readonly #parts: MirrorSyncParts;
  readonly #states = new Map<string, SharedState>();
  readonly #bases = new MergeBases();

  constructor(parts: MirrorSyncParts) {
    this.#parts = parts;
  }

  /** State of a repository. */
  state(id: RepositoryId): SharedState {
    const state = this.#states.get(id.key) ?? new SharedState();
    this.#states.set(id.key, state);
    return state;
  }

  /** Forgets a repository whose data was removed. */
  forget(id: RepositoryId): void {
    this.#states.get(id.key)?.clear();
    this.#bases.forget(id);
    this.#parts.uploads.forget(id);
  }

  /**
   * Brings the mirror up to date from the bucket. All files are there, compared with their checksums, or nothing changes.
   *
   * @throws ObjectStoreError; ManifestUnusable; errors of the mirror
   */
  async pull(id: RepositoryId, options: PullOptions): Promise<PullResult> {
    const state = this.state(id);
    return await state.pulls.run(async () => {
      options.signal.throwIfAborted();
      const { maxAgeMs = 0, signal } = options;
      const manifest = await this.#parts.manifests.current(id, { maxAgeMs, signal });
      if (manifest === undefined || manifest.packs.length === 0) return { manifest, changed: false };
      const changed = await this.#adopt(id, state, manifest, options);
      return { manifest, changed };
    });
  }

  /**
   * Uploads packs that the manifest does not name, and writes the packs and refs of the mirror into it. Does nothing if the
   * manifest has them.
   *
   * @throws ObjectStoreError; EpochChanged; ForeignManifest; errors of the mirror
   */
  async push(id: RepositoryId, signal: AbortSignal): Promise<void> {
    const state = this.state(id);
    await state.pushes.run(async () => {
      for (let tries = 1; tries <= MAX_TRIES; tries++) {
        signal.throwIfAborted();
        if (await this.#tryPush(id, state, signal)) return;
      }
      throw new ObjectStoreError(
        "condition_failed",
        "Cannot write packs into the manifest of a repository: other instances change it all the time",
        { remedy: "retry" },
      );
    });
  }

  /** @returns whether the mirror has changed */
  async #adopt(
    id: RepositoryId,
    state: SharedState,
    manifest: Manifest,
    { signal, progress }: PullOptions,
  ): Promise<boolean> {
    const { source, shown } = this.#parts;
    const { sharing } = this.#parts.mirrors.of(id);
    const { objectFormat: format, packs, refs: shared, retainedRefs: retained } = manifest;
    const contents = await sharing.contents();
    if (format === undefined) throw new ManifestUnusable("it does not name the object format");
    if (contents !== undefined && contents.format !== format)
      throw new ManifestUnusable("the mirror has another object format");
    const missing = packs.filter(
      ({ pack }) => contents?.packs.has(pack) !== true && !state.replaced.has(pack),
    );
    if (missing.length === 0 && state.hasAdopted(manifest)) return false;
    await using folder = await sharing.stage(format);
    progress?.begin(bytesOf(missing));
    const onBytes = (count: number): void => progress?.add(count);
    const staged = await downloadPacks(missing, { source, id, folder, signal, onBytes }).catch(
      (error: unknown) => {
        if (isLoss(error)) state.lose(missing);
        throw error;
      },
    );
    signal.throwIfAborted();
    const result = await sharing.adopt({
      format,
      folder,
      packs: staged,
      shared: namesOf(packs),
      replaced: replacedPacks(manifest),
      refs: (local, isHere) =>
        mergeSharedRefs({ base: this.#bases.of(id), local, shared, shown: shown(id), isHere }),
      retained,
    });
    if (result.kind === "adopted") {
      this.#adopted(id, state, manifest);
      return true;
    }
    if (state.replaced.size === 0) throw new ManifestUnusable("an object is in none of its packs");
    // Another instance needs objects that this one has dropped. The old packs are needed, and the merged one is not.
    state.forgetReplaced();
    return await this.#adopt(id, state, manifest, { signal, ...(progress && { progress }) });
  }

  /** The mirror has what the manifest has. */
  #adopted(id: RepositoryId, state: SharedState, manifest: Manifest): void {
    state.adopted(manifest);
    this.#bases.set(id, manifest.refs);
  }

  /** @returns false if another instance was faster: then the mirror must adopt its packs first */
  async #tryPush(id: RepositoryId, state: SharedState, signal: AbortSignal): Promise<boolean> {
    const { uploads, manifests, epochs } = this.#parts;
    const epoch = epochs.of(id);
    const { manifest, isReadable } = await this.#pullForPush(id, signal);
    await using snapshot = await this.#parts.mirrors.of(id).sharing.snapshot();
    if (snapshot === undefined || snapshot.refs.size === 0) return true;
    const here = new Set(snapshot.packs.map(({ name }) => name));
    const known = manifest?.packs ?? [];
    // The mirror was repaired or removed since, or a repack has ended.
    if (isReadable && known.some(({ pack }) => !here.has(pack) && !state.replaced.has(pack))) return false;
    if (manifest !== undefined && manifest.epoch !== epoch) return false;
    const packs: ManifestPack[] = [];
    for (const pack of snapshot.packs) {
      // The code host may have given the same pack again, whose objects in the bucket are damaged.
      const named = known.find((each) => each.pack === pack.name && !state.isLost(each));
      packs.push(named ?? (await uploads.upload(id, pack, signal)));
    }
    const change = this.#changeTo(id, manifest, packs, snapshot);
    const fence = state.fence ?? 0;
    try {
      const written = await manifests.update(id, { epoch, fence, signal }, change);
      if (written === undefined) return false;
      this.#adopted(id, state, written);
      uploads.forget(id);
      return true;
    } catch (error) {
      if (!(error instanceof FenceLost)) throw error;
      // The new holder of the lease merges packs. The packs that were merged here are adopted again.
      state.forgetReplaced();
      // Packs can be added without a lease.
      state.fence = undefined;
      return false;
    }
  }

  /** The manifest after its adoption. `isReadable`: whether the mirror has its packs. */
  async #pullForPush(
    id: RepositoryId,
    signal: AbortSignal,
  ): Promise<{ readonly manifest: Manifest | undefined; readonly isReadable: boolean }> {
    try {
      return { ...(await this.pull(id, { signal })), isReadable: true };
    } catch (error) {
      if (!isLoss(error)) throw error;
      // No instance can read it. The mirror is complete, so its packs replace all others.
      return { manifest: this.#parts.manifests.known(id), isReadable: false };
    }
  }

  /** The change that writes the packs and refs of the mirror, if packs and refs are still those that it has adopted. */
  #changeTo(
    id: RepositoryId,
    adopted: Manifest | undefined,
    packs: readonly ManifestPack[],
    { refs: refMap, retainedRefs, format }: MirrorSnapshot,
  ): (content: ManifestContent) => ManifestContent | undefined {
    const { uploads, clock, pruneAfterMs } = this.#parts;
    const refs = [...refMap.values()];
    const isSame = (content: ManifestContent, as: Pick<ManifestContent, "packs" | "refs">): boolean =>
      isSamePacks(content.packs, as.packs) && isSameRefs(content.refs, as.refs);
    const added = packs.filter((pack) => adopted?.packs.includes(pack) !== true);
    return (content) => {
      if (isSame(content, { packs, refs })) return content;
      if (!isSame(content, adopted ?? { packs: [], refs: [] })) return undefined;
      uploads.forgetDead(id, content.tombstones);
      if (added.some((entry) => uploads.find(id, entry.pack) !== entry)) return undefined;
      const retained = youngRefs(retainedRefs, clock.now(), pruneAfterMs);
      return { ...content, objectFormat: format, packs, refs, retainedRefs: retained };
    };
  }
}

/** Whether objects of the manifest are gone or have other bytes. Other faults pass. */
function isLoss(error: unknown): boolean {
  if (error instanceof ManifestUnusable) return true;
  return error instanceof ObjectStoreError && (error.code === "missing" || error.code === "damaged");
}

import type { RepositoryId } from "../../../access/repository-id.ts";
import type { Manifest, ManifestContent } from "./manifest.ts";

/**
 * Manifests of all repositories in the bucket.
 *
 * A manifest is used only if its HMAC fits this service, code host, repository, generation and epoch, and its epoch is not
 * lower than the known one. Any other one counts as absent; it is logged and counted once. If the bucket shows an older
 * generation than this process has seen, the newer one counts, and the next update writes it again.
 */
export interface ManifestStore {
  /**
   * The manifest that this process has read or written last. Sends no request. Undefined also for a repository that was not
   * used for long.
   */
  known(id: RepositoryId): Manifest | undefined;
  /**
   * Asks the bucket for the manifest, with a conditional GET. Concurrent callers share one request. The first call for a
   * repository always asks.
   *
   * @param maxAgeMs a manifest that was asked for within this time is not asked for again; default 0
   * @returns undefined: there is none that can be used
   * @throws ObjectStoreError if the bucket does not answer
   */
  current(
    id: RepositoryId,
    options?: { readonly maxAgeMs?: number; readonly signal?: AbortSignal },
  ): Promise<Manifest | undefined>;
  /**
   * Changes a manifest: applies the change to the known manifest, or to the one in the bucket, and replaces it with a
   * conditional put. Reads and repeats that if another instance was faster. Changes of one repository that wait are written
   * together.
   *
   * Objects that the manifest no longer names become tombstones by themselves.
   *
   * @param change called with the content to start from, possibly several times, and also with content that has the change
   *   already, because a response was lost; returns the same content if it has the change, or undefined to write nothing
   * @param fence fencing number of the caller's lease; 0 without a lease
   * @returns the manifest that has the change; undefined if the change returned undefined
   * @throws ObjectStoreError if the bucket does not answer (with `outcomeUnknown`: the change may be there later);
   *   EpochChanged if the repository was purged since the caller read `epoch`; FenceLost if a later holder of the lease has
   *   written; ForeignManifest; ManifestFault if the content cannot be written; errors of `change`
   */
  update(
    id: RepositoryId,
    options: { readonly epoch: number; readonly fence?: number; readonly signal?: AbortSignal },
    change: (content: ManifestContent) => ManifestContent | undefined,
  ): Promise<Manifest | undefined>;
  /**
   * Replaces the manifest by one of this higher epoch without objects. Their names become tombstones. A manifest with another
   * key is replaced too. Does nothing if the bucket has this epoch or a higher one already.
   *
   * @returns epoch of the manifest in the bucket
   * @throws ObjectStoreError
   */
  reset(id: RepositoryId, epoch: number): Promise<number>;
}

/** The repository was purged or removed while something was about to be written for it. */
export class EpochChanged extends Error {
  constructor() {
    super("the repository was purged while its data was being written to the bucket");
    this.name = "EpochChanged";
  }
}

/** Another instance has the lease now, and has written with it. */
export class FenceLost extends Error {
  constructor() {
    super("another instance has taken the lease of the repository");
    this.name = "FenceLost";
  }
}

/** The manifest in the bucket was written with another key, or by a newer version. Only its writers may replace it. */
export class ForeignManifest extends Error {
  constructor(reason: "other_key" | "newer_format") {
    super(
      reason === "other_key"
        ? "the manifest in the bucket was written with another key"
        : "a newer version of this program wrote the manifest in the bucket",
    );
    this.name = "ForeignManifest";
  }
}

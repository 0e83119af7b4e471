import type { RepositoryId } from "../../../access/repository-id.ts";
import { responseLimit, type CachePolicies } from "../../policy.ts";
import type { EpochSource } from "../manifest/epoch-source.ts";
import type { ManifestStore } from "../manifest/manifest-store.ts";
import type { Manifest, ManifestResponse, StoredObject } from "../manifest/manifest.ts";
import { bytesOf, withResponse, withUses, withinLimit, withoutObject } from "./listed-responses.ts";

/** Milliseconds in which a manifest is not asked for again, so that a miss costs one request for all that follow it. */
const MISS_MS = 5000;

export interface BucketResponsesParts {
  readonly manifests: ManifestStore;
  readonly epochs: Pick<EpochSource, "of">;
  readonly policies: CachePolicies;
  /** Milliseconds since the epoch by the clock of the store, which all instances share. */
  readonly now: () => number;
}

/** Responses that the manifests in the bucket name. All methods throw what {@link ManifestStore} throws. */
export class BucketResponses {
  readonly #parts: BucketResponsesParts;

  constructor(parts: BucketResponsesParts) {
    this.#parts = parts;
  }

  /** Asks the bucket, unless it was asked within the last seconds. */
  async find(id: RepositoryId, key: string, signal?: AbortSignal): Promise<ManifestResponse | undefined> {
    const options = signal === undefined ? {} : { signal };
    return findIn(await this.#parts.manifests.current(id, { maxAgeMs: MISS_MS, ...options }), key);
  }

  /** The response, as far as this process knows. Sends no request. */
  known(id: RepositoryId, key: string): ManifestResponse | undefined {
    return findIn(this.#parts.manifests.known(id), key);
  }

  /**
   * Names a response that was uploaded. Others may be evicted for it.
   *
   * @param epoch in which its upload began
   */
  async add(
    id: RepositoryId,
    key: string,
    object: StoredObject,
    epoch: number,
    signal?: AbortSignal,
  ): Promise<void> {
    const response = { key, object, usedAt: Math.trunc(this.#parts.now()) };
    const options = signal === undefined ? { epoch } : { epoch, signal };
    await this.#parts.manifests.update(id, options, (content) =>
      withResponse(content, response, this.#limitOf(id)),
    );
  }

  /** Removes a response whose object is damaged or gone. */
  async drop(id: RepositoryId, object: StoredObject): Promise<void> {
    await this.#parts.manifests.update(id, this.#epoch(id), (content) => withoutObject(content, object));
  }

  /** Whether responses are over the limit of the repository, as far as its manifest is known. */
  isOverLimit(id: RepositoryId): boolean {
    const known = this.#parts.manifests.known(id);
    return known !== undefined && withinLimit(known, this.#limitOf(id)) !== undefined;
  }

  /** Evicts responses over the limit of the repository. */
  async enforceLimit(id: RepositoryId): Promise<void> {
    await this.#parts.manifests.update(id, this.#epoch(id), (content) =>
      withinLimit(content, this.#limitOf(id)),
    );
  }

  /** Records uses, if the known manifest shows that they are much later. @param uses times by key */
  async recordUses(id: RepositoryId, uses: ReadonlyMap<string, number>): Promise<void> {
    const known = this.#parts.manifests.known(id);
    if (known === undefined || withUses(known, uses) === undefined) return;
    await this.#parts.manifests.update(id, this.#epoch(id), (content) => withUses(content, uses));
  }

  /** Number and bytes of the responses in the bucket, as far as this process knows. */
  figures(id: RepositoryId): { readonly responses: number; readonly bytes: number } | undefined {
    const known = this.#parts.manifests.known(id);
    if (known === undefined) return undefined;
    const { responses } = known;
    return { responses: responses.length, bytes: bytesOf(responses.map(({ object }) => object)) };
  }

  /** Milliseconds since the epoch by the clock of the store. */
  now(): number {
    return this.#parts.now();
  }

  #epoch(id: RepositoryId): { readonly epoch: number } {
    return { epoch: this.#parts.epochs.of(id) };
  }

  /** `max_cache_size_mb`, in bytes. */
  #limitOf({ owner, name }: RepositoryId): number {
    return responseLimit(this.#parts.policies.find(owner, name));
  }
}

function findIn(manifest: Manifest | undefined, key: string): ManifestResponse | undefined {
  return manifest?.responses.find((response) => response.key === key);
}

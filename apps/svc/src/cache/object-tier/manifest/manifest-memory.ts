import { BoundedMap } from "@devplat/base/bounded-map";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { EpochSource } from "./epoch-source.ts";
import type { Manifest } from "./manifest.ts";

/** Bytes of all manifests in memory, as they are in the bucket. A repository with 10,000 refs takes 1 MB. */
const MAX_BYTES = 64 << 20;
/** Memory of an entry without its manifest. */
const ENTRY_BYTES = 512;

/** State of a repository's manifest in the bucket, as far as this process knows. */
export interface Remembered {
  /** Version of the ManifestFile; undefined: there is none. */
  readonly version: string | undefined;
  /** The manifest in the bucket, if its HMAC is right. Its epoch may be old. */
  readonly stored: Manifest | undefined;
  /** HMAC of `stored`. */
  readonly hmac: string | undefined;
  /** The newest manifest that was read or written here. It is the one to start from. */
  readonly newest: Manifest | undefined;
  /** Set: only its writers may replace the object. */
  readonly foreign: "other_key" | "newer_format" | undefined;
  /** Whether `newest` may be used. */
  readonly usable: boolean;
  /** Monotonic time of the request, in milliseconds. */
  readonly askedAt: number;
  readonly bytes: number;
}

/** Manifests in memory, those that were used last. */
export class ManifestMemory {
  readonly #epochs: EpochSource;
  readonly #entries = new BoundedMap<string, Remembered>({
    max: MAX_BYTES,
    sizeOf: ({ bytes }) => bytes + ENTRY_BYTES,
  });

  constructor(epochs: EpochSource) {
    this.#epochs = epochs;
  }

  get(id: RepositoryId): Remembered | undefined {
    return this.#entries.get(id.key);
  }

  set(id: RepositoryId, remembered: Remembered): void {
    this.#entries.set(id.key, remembered);
  }

  /** After a write. Another instance may have written again since, and this process may know that already. */
  setWritten(
    id: RepositoryId,
    {
      manifest,
      ...rest
    }: Pick<Remembered, "version" | "hmac" | "askedAt" | "bytes"> & { readonly manifest: Manifest },
  ): void {
    const known = this.get(id)?.stored;
    if (known !== undefined && known.generation > manifest.generation && known.epoch >= manifest.epoch)
      return;
    this.set(id, { ...rest, stored: manifest, newest: manifest, foreign: undefined, usable: true });
  }

  /** The manifest to use. An epoch may have become higher since it was read. */
  usable(id: RepositoryId): Manifest | undefined {
    const entry = this.#entries.get(id.key);
    if (entry?.usable !== true || entry.newest === undefined) return undefined;
    return entry.newest.epoch < this.#epochs.of(id) ? undefined : entry.newest;
  }
}

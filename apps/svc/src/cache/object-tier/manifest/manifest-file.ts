import { ObjectStoreError, type GetResult, type ObjectStore } from "@devplat/object-store";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { ObjectNames } from "../object-names.ts";
import { MAX_MANIFEST_BYTES } from "./manifest-codec.ts";

/**
 * Result of reading the place of a manifest. `version` tells it from every other one.
 * - `absent`: nothing. `same`: still the known version.
 * - `found`: these bytes. Without bytes they are too many for a manifest, or their object is gone.
 */
export type FoundManifest =
  | { readonly kind: "absent" }
  | { readonly kind: "same" }
  | { readonly kind: "found"; readonly version: string; readonly bytes: Buffer | undefined };

/** The place of the manifest of each repository. It can be replaced only by somebody who knows its version. */
export interface ManifestFile {
  /** @param known version whose bytes need not be read again @throws ObjectStoreError */
  read(id: RepositoryId, known: string | undefined): Promise<FoundManifest>;
  /**
   * @param before version that is replaced; undefined: there is none
   * @param fence fencing number of the manifest
   * @returns the new version
   * @throws ObjectStoreError `condition_failed`: another version is there
   */
  replace(
    id: RepositoryId,
    bytes: Buffer,
    options: { readonly before: string | undefined; readonly fence: number },
  ): Promise<string>;
}

/** Manifests as one object for each repository, in a bucket that honours conditions. The version is the ETag. */
export class ConditionalManifestFile implements ManifestFile {
  readonly #store: Pick<ObjectStore, "get" | "put">;
  readonly #names: ObjectNames;

  constructor(store: Pick<ObjectStore, "get" | "put">, names: ObjectNames) {
    this.#store = store;
    this.#names = names;
  }

  async read(id: RepositoryId, known: string | undefined): Promise<FoundManifest> {
    const condition = known === undefined ? {} : { ifNoneMatch: known };
    try {
      const found = await this.#store.get(this.#names.manifest(id), { traffic: "control", ...condition });
      if (!found.modified) return { kind: "same" };
      return { kind: "found", version: found.etag, bytes: await manifestBytes(found) };
    } catch (error) {
      if (!isMissing(error)) throw error;
      return { kind: "absent" };
    }
  }

  async replace(
    id: RepositoryId,
    bytes: Buffer,
    { before }: { readonly before: string | undefined },
  ): Promise<string> {
    const condition = before === undefined ? ({ ifAbsent: true } as const) : { ifMatch: before };
    const { etag } = await this.#store.put(this.#names.manifest(id), bytes, {
      condition,
      traffic: "control",
    });
    return etag;
  }
}

/** The bytes of an object, or undefined if it is too large for a manifest. */
export async function manifestBytes({
  body,
  bodyLength,
}: Extract<GetResult, { modified: true }>): Promise<Buffer | undefined> {
  if (bodyLength > MAX_MANIFEST_BYTES) {
    body.on("error", () => undefined).destroy();
    return undefined;
  }
  return Buffer.concat((await body.toArray()) as Buffer[]);
}

export function isMissing(error: unknown): boolean {
  return error instanceof ObjectStoreError && error.code === "missing";
}

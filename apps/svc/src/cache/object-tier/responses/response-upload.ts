import { BoundedMap } from "@devplat/base/bounded-map";
import type { ObjectStore } from "@devplat/object-store";
import type { RepositoryId } from "../../../access/repository-id.ts";
import { StoredDataDamaged } from "../../responses/block-sums.ts";
import type { LocalResponseStore } from "../../responses/response-store.ts";
import { EpochChanged } from "../manifest/manifest-store.ts";
import type { StoredObject } from "../manifest/manifest.ts";
import { newResponseName, type ObjectNames } from "../object-names.ts";
import { jobName, type UploadJob, type UploadKind } from "../uploads/upload-job.ts";
import type { BucketResponses } from "./bucket-responses.ts";
import { ResponseSource } from "./response-source.ts";

/** Name of the jobs that upload a response. Their subject is its key. */
export const RESPONSE_JOB = "response";
/** Objects that are complete and that no manifest names yet. */
const MAX_UNNAMED = 256;

export interface ResponseUploadParts {
  readonly local: Pick<LocalResponseStore, "content">;
  readonly bucket: Pick<BucketResponses, "find" | "add">;
  readonly store: Pick<ObjectStore, "put" | "putLarge">;
  readonly names: ObjectNames;
  /** Id of this instance. */
  readonly writer: string;
}

/** Uploads stored responses: the object, then its list of slices, then the entry in the manifest. */
export class ResponseUpload implements UploadKind {
  readonly isDroppable = true;
  readonly #parts: ResponseUploadParts;
  /** By job. The next try of a job only has to name its object. */
  readonly #unnamed = new BoundedMap<string, StoredObject>({ max: MAX_UNNAMED });

  constructor(parts: ResponseUploadParts) {
    this.#parts = parts;
  }

  async run(job: UploadJob, signal: AbortSignal): Promise<void> {
    const { id, subject: key, epoch } = job;
    const { bucket } = this.#parts;
    if ((await bucket.find(id, key, signal)) !== undefined) return;
    const attempt = `${jobName(job)} ${epoch}`;
    try {
      const object = this.#unnamed.get(attempt) ?? (await this.#upload(id, key, signal));
      if (object === undefined) return;
      this.#unnamed.set(attempt, object);
      await bucket.add(id, key, object, epoch, signal);
      this.#unnamed.delete(attempt);
    } catch (error) {
      // The next use of a damaged response finds the damage. A purged one is not wanted.
      if (!(error instanceof StoredDataDamaged || error instanceof EpochChanged)) throw error;
    }
  }

  /** @returns undefined if the response is not here any more. @throws ObjectStoreError; StoredDataDamaged; a system error */
  async #upload(id: RepositoryId, key: string, signal: AbortSignal): Promise<StoredObject | undefined> {
    const { local, store, names, writer } = this.#parts;
    const content = await local.content(id, key);
    if (content === undefined) return undefined;
    try {
      const name = newResponseName(key, writer);
      const source = new ResponseSource(content);
      const options = { condition: { ifAbsent: true }, traffic: "bulk", signal } as const;
      await store.putLarge(names.object(id, name), source, options);
      if (source.slices !== undefined) await store.put(names.slices(id, name), source.slices, options);
      return source.object(name);
    } finally {
      await content.close();
    }
  }
}

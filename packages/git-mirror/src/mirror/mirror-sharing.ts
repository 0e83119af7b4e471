import type { Serializer } from "@devplat/base/serializer";
import type { ObjectFormat } from "@devplat/git-protocol";
import type { StagingFolder, StorageSnapshot } from "../storage/contract.ts";
import type { JobRunner } from "../threads/job.ts";
import { adoptInChange, type Adoption, type AdoptionResult } from "./adoption.ts";
import type { MirrorChange } from "./mirror-change.ts";
import type { MirrorReader } from "./mirror-reader.ts";

export interface MirrorSharingParts {
  readonly reader: MirrorReader;
  /** Fills, adoptions and repairs run one after another. */
  readonly changes: Serializer;
  /** Fires when the mirror is closed for good. */
  readonly ended: AbortSignal;
  readonly checks: JobRunner;
  readonly onChanged: (change: MirrorChange) => void;
}

/** The caller must dispose it. */
export type MirrorSnapshot = StorageSnapshot & { readonly format: ObjectFormat };

export interface MirrorContents {
  readonly format: ObjectFormat;
  /** Names, `pack-<checksum>`. */
  readonly packs: ReadonlySet<string>;
}

/** Exchange of packs and refs with other mirrors of the same repository. */
export class MirrorSharing {
  readonly #parts: MirrorSharingParts;

  constructor(parts: MirrorSharingParts) {
    this.#parts = parts;
  }

  /** Object format and names of the packs that readers see. Undefined: there are none. @throws as {@link Mirror.view} */
  async contents(): Promise<MirrorContents | undefined> {
    const repository = await this.#parts.reader.current();
    if (repository === undefined) return undefined;
    const { format, objects } = repository;
    return { format, packs: new Set(objects.packs.map(({ name }) => name)) };
  }

  /** Makes a folder for the files of an {@link Adoption}. A mirror of another format is removed. */
  async stage(format: ObjectFormat): Promise<StagingFolder> {
    const { reader, ended } = this.#parts;
    ended.throwIfAborted();
    return await (await reader.forChange(format)).stage();
  }

  /**
   * Takes in packs and refs that other mirrors share. Readers see the mirror of before or of after.
   *
   * @throws GitStoreError, JobFailure, a system error. The mirror is then as before.
   */
  async adopt(adoption: Adoption): Promise<AdoptionResult> {
    const { reader, changes, ended, checks, onChanged } = this.#parts;
    using _ = reader.keepOpen();
    return await changes.run(async () => {
      ended.throwIfAborted();
      const repository = await reader.forChange(adoption.format);
      await using change = await repository.beginChange(ended);
      const result = await adoptInChange(adoption, repository, change, checks);
      if (result.kind === "incomplete") return result;
      await reader.current();
      onChanged({ kind: "adopted" });
      return result;
    });
  }

  /**
   * Packs and refs of the mirror, after changes that wait. The caller must dispose the result.
   *
   * @returns undefined if nothing is stored
   */
  async snapshot(): Promise<MirrorSnapshot | undefined> {
    const { reader, changes, ended } = this.#parts;
    using _ = reader.keepOpen();
    return await changes.run(async () => {
      ended.throwIfAborted();
      const repository = await reader.current();
      if (repository === undefined) return undefined;
      await using change = await repository.beginChange(ended);
      return { ...(await change.snapshot()), format: repository.format };
    });
  }
}

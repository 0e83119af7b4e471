import type { RepositoryId } from "../../../access/repository-id.ts";
import type { ProbedStore } from "../bucket/probed-store.ts";
import type { FoundManifest, ManifestFile } from "./manifest-file.ts";

/** The manifests in the way that fits the bucket, as its probe has shown. */
export class ChosenManifestFile implements ManifestFile {
  readonly #store: Pick<ProbedStore, "decided" | "hasConditions">;
  readonly #conditional: ManifestFile;
  readonly #pointed: ManifestFile | undefined;

  /** @param pointed undefined: without conditions the bucket is not used */
  constructor(
    store: Pick<ProbedStore, "decided" | "hasConditions">,
    conditional: ManifestFile,
    pointed: ManifestFile | undefined,
  ) {
    this.#store = store;
    this.#conditional = conditional;
    this.#pointed = pointed;
  }

  async read(id: RepositoryId, known: string | undefined): Promise<FoundManifest> {
    return await (await this.#chosen()).read(id, known);
  }

  async replace(...args: Parameters<ManifestFile["replace"]>): Promise<string> {
    return await (await this.#chosen()).replace(...args);
  }

  async #chosen(): Promise<ManifestFile> {
    await this.#store.decided();
    return this.#store.hasConditions ? this.#conditional : (this.#pointed ?? this.#conditional);
  }
}

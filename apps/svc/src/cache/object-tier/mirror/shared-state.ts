import type { RepackResult } from "@devplat/git-mirror";
import { Serializer } from "@devplat/base/serializer";
import type { Manifest, ManifestPack } from "../manifest/manifest.ts";
import { packKey } from "./shared-packs.ts";

/** Memory of one process about a mirror and its manifest. */
export class SharedState {
  /** Pulls run one after another. */
  readonly pulls = new Serializer();
  /** Pushes run one after another. */
  readonly pushes = new Serializer();
  /** Fencing number of the lease under which this instance may merge packs. */
  fence: number | undefined;
  /** Uploads of packs that could not be read: objects of one of them are gone or damaged. */
  #lost = new Set<string>();
  /** Names of packs that this mirror has replaced, and that a manifest may still name. */
  #replaced = new Set<string>();
  #adopted: Pick<Manifest, "epoch" | "generation"> | undefined;

  get replaced(): ReadonlySet<string> {
    return this.#replaced;
  }

  /** A repack of this mirror replaced packs. */
  repacked({ replaced }: RepackResult): void {
    this.#replaced = this.#replaced.union(new Set(replaced));
  }

  /** Nothing is replaced any more: the packs of the manifest are needed. */
  forgetReplaced(): void {
    this.#replaced = new Set();
  }

  /** Packs of a manifest could not be read. They are uploaded again before they are named again. */
  lose(packs: readonly ManifestPack[]): void {
    this.#lost = this.#lost.union(new Set(packs.map(packKey)));
  }

  isLost(pack: ManifestPack): boolean {
    return this.#lost.has(packKey(pack));
  }

  /** The mirror has what the manifest has. */
  adopted({ epoch, generation, packs }: Manifest): void {
    this.#adopted = { epoch, generation };
    this.#lost = this.#lost.intersection(new Set(packs.map(packKey)));
    this.#replaced = this.#replaced.intersection(new Set(packs.map(({ pack }) => pack)));
  }

  hasAdopted({ epoch, generation }: Manifest): boolean {
    return this.#adopted?.epoch === epoch && this.#adopted.generation === generation;
  }

  /** The data of the repository was removed. */
  clear(): void {
    this.#adopted = undefined;
    this.#replaced = new Set();
    this.#lost = new Set();
  }
}

import { checkFolder, checkPath } from "@devplat/secret-store";

/**
 * Why a secret cannot be written over the browser or the API.
 * - `outside`: it lies in no subtree of `web.editable_paths`.
 * - `enrolment`: an enrolment owns it, whether it has run yet or not.
 */
export type WriteRefusal = "outside" | "enrolment";

/** Where secrets may be written over the browser and the API. Everything comes from the configuration. */
export class WritePolicy {
  readonly #subtrees: readonly string[];
  readonly #enrolmentKeys: () => readonly string[];

  /**
   * @param editablePaths `web.editable_paths`: `tools` is the secret of that name and all below it, `tools/` only what
   *   is below
   * @param enrolmentKeys keys of the enrolments that are configured now
   * @throws SecretStoreError `bad_path` for a path that is none; an empty one would be the root, which nobody names by accident
   */
  constructor(editablePaths: readonly string[], enrolmentKeys: () => readonly string[]) {
    for (const path of editablePaths) {
      if (path.endsWith("/")) checkFolder(path);
      else checkPath(path);
    }
    this.#subtrees = [...new Set(editablePaths)].toSorted();
    this.#enrolmentKeys = enrolmentKeys;
  }

  /** The editable subtrees as folders, sorted. */
  get folders(): readonly string[] {
    return [...new Set(this.#subtrees.map((path) => (path.endsWith("/") ? path : `${path}/`)))];
  }

  /** Why the secret at a path cannot be written; undefined if it can. */
  refusal(path: string): WriteRefusal | undefined {
    if (this.#enrolmentKeys().includes(path)) return "enrolment";
    return this.#subtrees.some((subtree) => covers(subtree, path)) ? undefined : "outside";
  }

  /** Whether secrets can be created directly in a folder. The root never is one. */
  coversFolder(folder: string): boolean {
    return this.folders.some((subtree) => folder.startsWith(subtree));
  }
}

function covers(subtree: string, path: string): boolean {
  if (subtree.endsWith("/")) return path.startsWith(subtree);
  return path === subtree || path.startsWith(`${subtree}/`);
}

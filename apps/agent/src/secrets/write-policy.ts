import { checkFolder, checkPath } from "@devplat/secret-store";

/**
 * Why a secret cannot be written over the browser or the API.
 * - `outside`: it is in no subtree of `web.editable_paths`.
 * - `enrolment`: an enrolment owns it, whether it has run yet or not.
 */
export type WriteRefusal = "outside" | "enrolment";

/** Paths that may be written over the browser and the API, from the configuration. */
export class WritePolicy {
  /** The editable subtrees as folders, sorted. */
  readonly folders: readonly string[];
  readonly #enrolmentKeys: () => readonly string[];

  /**
   * @param editablePaths `web.editable_paths`: `tools` and `tools/` are all that is below that folder. A secret `tools` is
   *   outside of it, and not covered
   * @param enrolmentKeys keys of the enrolments that are configured now
   * @throws SecretStoreError `bad_path` for an invalid path. An empty one would be the root, which must not be named by accident
   */
  constructor(editablePaths: readonly string[], enrolmentKeys: () => readonly string[]) {
    for (const path of editablePaths) {
      if (path.endsWith("/")) checkFolder(path);
      else checkPath(path);
    }
    const folders = editablePaths.map((path) => (path.endsWith("/") ? path : `${path}/`));
    this.folders = [...new Set(folders)].toSorted();
    this.#enrolmentKeys = enrolmentKeys;
  }

  /** Why the secret at a path cannot be written; undefined if it can. */
  refusal(path: string): WriteRefusal | undefined {
    if (this.#enrolmentKeys().includes(path)) return "enrolment";
    return this.coversFolder(path) ? undefined : "outside";
  }

  /** Whether secrets can be created directly in a folder. The root never is one. */
  coversFolder(folder: string): boolean {
    return this.folders.some((subtree) => folder.startsWith(subtree));
  }
}

import { FileError } from "../file-error.ts";
import { isTemporary, newSecretPath } from "../file-names.ts";
import type { DirectoryNode, FileSource } from "../nodes.ts";
import type { DraftTarget } from "./draft.ts";
import type { Overlay } from "./overlay.ts";

/** Which part of the store a file is written to, and whether this is allowed. */
export class Targets {
  readonly #overlay: Overlay;
  readonly #isOwned: (path: string) => boolean;

  /** @param isOwned whether an enrolment owns a secret */
  constructor(overlay: Overlay, isOwned: (path: string) => boolean) {
    this.#overlay = overlay;
    this.#isOwned = isOwned;
  }

  /** The secret or field of an existing file. @throws FileError EACCES */
  of(source: FileSource): DraftTarget {
    if (source.kind === "rendered" || source.kind === "memory") throw new FileError("EACCES");
    this.checkOwner(source.path);
    return source;
  }

  /** The secret or field that a new file becomes: undefined if it stays in memory. @throws FileError EINVAL; EACCES */
  ofNew(parent: DirectoryNode, name: string): DraftTarget | undefined {
    if (isTemporary(name)) return undefined;
    const { place } = parent;
    if (place.kind === "fields") {
      this.checkOwner(place.path);
      return { kind: "field", path: place.path, field: name };
    }
    if (!name.endsWith(".json") || this.#isBelowTemporary(parent)) return undefined;
    const path = newSecretPath(place.folder, name);
    if (path === undefined) throw new FileError("EINVAL");
    this.checkOwner(path);
    return { kind: "secret", path };
  }

  /** @throws FileError EACCES if an enrolment owns the secret */
  checkOwner(path: string): void {
    if (this.#isOwned(path)) throw new FileError("EACCES");
  }

  /** Nothing becomes a secret in a directory like `.git` that is only in memory. */
  #isBelowTemporary(directory: DirectoryNode): boolean {
    for (let each: DirectoryNode | undefined = directory; each !== undefined; each = each.parent)
      if (
        each.place.kind === "folder" &&
        isTemporary(each.name) &&
        this.#overlay.hasFolder(each.place.folder)
      )
        return true;
    return false;
  }
}

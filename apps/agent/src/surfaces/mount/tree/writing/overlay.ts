import { foldersAbove } from "../../../../secrets/folder/folders-above.ts";
import type { Timers } from "../../timers.ts";
import { pathOfPlace, type Draft, type DraftBase, type Place } from "./draft.ts";

/** Time for which a renamed secret's name stays free for its replacement, in milliseconds. */
const HIDDEN_MS = 30_000;

/** Names that differ from those of the store: files and directories that are only in memory, and hidden names. */
export class Overlay {
  readonly #timers: Timers;
  /** By path of the directory, then by name. */
  readonly #files = new Map<string, Map<string, Draft>>();
  /** Folders of the store that exist only here: they end in `/`. */
  readonly #folders = new Set<string>();
  /** By path. */
  readonly #hidden = new Map<string, { readonly base: DraftBase; readonly cancel: () => void }>();

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  get isEmpty(): boolean {
    return this.#files.size === 0 && this.#folders.size === 0 && this.#hidden.size === 0;
  }

  file({ directory, name }: Place): Draft | undefined {
    return this.#files.get(directory)?.get(name);
  }

  /** Files in a directory, by name. */
  files(directory: string): ReadonlyMap<string, Draft> {
    return this.#files.get(directory) ?? new Map<string, Draft>();
  }

  *allFiles(): Generator<Draft> {
    for (const files of this.#files.values()) yield* files.values();
  }

  /** Gives a file its name. A file that has it loses it. */
  add(draft: Draft, place: Place): void {
    const before = this.file(place);
    if (before !== undefined && before !== draft) this.remove(before);
    this.#unname(draft);
    draft.place = place;
    draft.isNamed = true;
    const files = this.#files.get(place.directory) ?? new Map<string, Draft>();
    files.set(place.name, draft);
    this.#files.set(place.directory, files);
  }

  /** Takes the name from a file. Its bytes are released when nobody has it open. */
  remove(draft: Draft): void {
    this.#unname(draft);
    releaseIfUnused(draft);
  }

  #unname(draft: Draft): void {
    if (!draft.isNamed) return;
    draft.isNamed = false;
    const { directory, name } = draft.place;
    const files = this.#files.get(directory);
    files?.delete(name);
    if (files?.size === 0) this.#files.delete(directory);
  }

  hasFolder(folder: string): boolean {
    return this.#folders.has(folder);
  }

  get folderCount(): number {
    return this.#folders.size;
  }

  addFolder(folder: string): void {
    this.#folders.add(folder);
  }

  removeFolder(folder: string): void {
    this.#folders.delete(folder);
  }

  /** Keeps the folders above a secret, so that its removal does not remove the directory that a program uses. */
  keepFoldersAbove(path: string): void {
    for (const folder of foldersAbove(path)) if (folder !== "") this.#folders.add(folder);
  }

  /** The folders above a new secret are in the store. */
  dropFoldersAbove(path: string): void {
    for (const folder of foldersAbove(path)) this.#folders.delete(folder);
  }

  /** Names of the directories directly in a folder that are only here. */
  *foldersIn(folder: string): Generator<string> {
    for (const each of this.#folders) {
      if (each === folder || !each.startsWith(folder)) continue;
      const name = each.slice(folder.length, -1);
      if (!name.includes("/")) yield name;
    }
  }

  /** Moves all that is only in memory below a folder. Both folders end in `/`. */
  moveFolder(folder: string, newFolder: string): void {
    const moved = (path: string): string => `${newFolder}${path.slice(folder.length)}`;
    const folders = Array.from(this.#folders);
    for (const each of folders)
      if (each !== folder && each.startsWith(folder)) {
        this.#folders.delete(each);
        this.#folders.add(moved(each));
      }
    const drafts = Array.from(this.allFiles());
    for (const draft of drafts) {
      const { directory, name } = draft.place;
      if (!`${directory}/`.startsWith(folder)) continue;
      if (draft.target?.path.startsWith(folder) === true)
        draft.target = { ...draft.target, path: moved(draft.target.path) };
      this.add(draft, { directory: moved(`${directory}/`).slice(0, -1), name });
    }
    for (const [path, { cancel }] of this.#hidden)
      if (path.startsWith(folder)) {
        cancel();
        this.#hidden.delete(path);
      }
  }

  /** Hides the name of a secret for a time. @param onEnd called when the name shows again without a replacement */
  hide(place: Place, base: DraftBase, onEnd: () => void): void {
    const path = pathOfPlace(place);
    this.show(place);
    const cancel = this.#timers.after(HIDDEN_MS, () => {
      this.#hidden.delete(path);
      onEnd();
    });
    this.#hidden.set(path, { base, cancel });
  }

  /** The version that a hidden name had. */
  hidden(place: Place): DraftBase | undefined {
    return this.#hidden.get(pathOfPlace(place))?.base;
  }

  show(place: Place): void {
    const path = pathOfPlace(place);
    this.#hidden.get(path)?.cancel();
    this.#hidden.delete(path);
  }
}

/** Gives the memory of a file back that has neither a name nor a handle. */
export function releaseIfUnused(draft: Draft): void {
  if (!draft.isNamed && draft.handles === 0) draft.buffer.release();
}

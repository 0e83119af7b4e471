import { checkPath } from "@devplat/secret-store/paths";

/** Longest name of a file (NAME_MAX), in bytes. */
const MAX_NAME_BYTES = 255;
const SECRET_END = ".json";
const FIELDS_END = ".d";

/** Meaning of a name in a directory. Paths are those of the secrets store. */
export type NamedEntry =
  /** A folder of the store. It ends in `/`. */
  | { readonly kind: "folder"; readonly folder: string }
  /** The document of a secret. */
  | { readonly kind: "secret"; readonly path: string }
  /** The directory with one file for each field of a secret. */
  | { readonly kind: "fields"; readonly path: string };

/** The entries of a directory by file name, in the order of the store. */
export interface FolderEntries {
  readonly entries: ReadonlyMap<string, NamedEntry>;
  /** Names that no file can have: over 255 bytes, or the name of a folder. */
  readonly omitted: number;
}

/**
 * File names for the names in a folder of the store. A secret `a` is `a.json`, and with the layout `both` its fields are in
 * `a.d`. A folder keeps its name, so a secret whose file would have the same name is left out.
 * @param names as in `SecretStore.list`
 */
export function folderEntries(
  folder: string,
  names: readonly string[],
  layout: "json" | "both",
): FolderEntries {
  const entries = new Map<string, NamedEntry>();
  let omitted = 0;
  const add = (name: string, entry: NamedEntry): void => {
    if (entries.has(name) || !isFileName(name)) omitted++;
    else entries.set(name, entry);
  };
  for (const name of names)
    if (name.endsWith("/")) add(name.slice(0, -1), { kind: "folder", folder: `${folder}${name}` });
  for (const name of names) {
    if (name.endsWith("/")) continue;
    const path = `${folder}${name}`;
    add(`${name}${SECRET_END}`, { kind: "secret", path });
    if (layout === "both") add(`${name}${FIELDS_END}`, { kind: "fields", path });
  }
  return { entries, omitted };
}

/** Whether a directory can have an entry of this name. */
export function isFileName(name: string): boolean {
  return (
    name !== "" &&
    name !== "." &&
    name !== ".." &&
    !/[/\0]/.test(name) &&
    Buffer.byteLength(name) <= MAX_NAME_BYTES
  );
}

/** Path of the secret that a new file in a folder would be; undefined if the file is none. */
export function newSecretPath(folder: string, fileName: string): string | undefined {
  if (isTemporary(fileName) || !fileName.endsWith(SECRET_END)) return undefined;
  const path = `${folder}${fileName.slice(0, -SECRET_END.length)}`;
  try {
    checkPath(path);
    return path;
  } catch {
    return undefined;
  }
}

/**
 * Names that editors and tools use while they save: swap files, backups, locks, `4913` of vim, `___jb_tmp___` of JetBrains. A
 * file that is created under one is never stored.
 */
export function isTemporary(fileName: string): boolean {
  return /^[.#]|~$|\.tmp|___jb_|^4913$/.test(fileName);
}

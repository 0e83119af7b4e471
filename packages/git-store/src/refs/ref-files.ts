import { readdir, readFile, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ObjectFormat } from "@devplat/git-protocol";
import type { Oid } from "../oid.ts";
import { parsePackedRefs } from "../repository/packed-refs.ts";
import { READ_FLAGS } from "../read-file.ts";
import { hasCode } from "../errors.ts";

/** The file `packed-refs`. */
export class PackedRefs {
  /** Latin-1, which keeps each byte: git allows names that are not UTF-8. */
  readonly #bytes: string;
  readonly #oids: ReadonlyMap<string, Oid>;
  /** Folders of refs: `refs/heads/a` for `refs/heads/a/b`. */
  #folders: ReadonlySet<string> | undefined;

  /** @throws {GitStoreError} `corrupt_repository` */
  constructor(file: Buffer, format: ObjectFormat) {
    this.#bytes = file.toString("latin1");
    this.#oids = new Map(parsePackedRefs(file.toString("utf8"), format).map(({ name, oid }) => [name, oid]));
  }

  /** @throws {GitStoreError} `corrupt_repository` */
  static async read(repositoryPath: string, format: ObjectFormat): Promise<PackedRefs> {
    try {
      return new PackedRefs(
        await readFile(join(repositoryPath, "packed-refs"), { flag: READ_FLAGS }),
        format,
      );
    } catch (error) {
      if (hasCode(error, "ENOENT")) return new PackedRefs(Buffer.alloc(0), format);
      throw error;
    }
  }

  oidOf(name: string): Oid | undefined {
    return this.#oids.get(name);
  }

  /** Whether a ref is below this name. */
  hasBelow(name: string): boolean {
    this.#folders ??= new Set([...this.#oids.keys()].flatMap(foldersOf));
    return this.#folders.has(name);
  }

  /** The file without these refs. All other lines stay as they are, because the header states facts about them. */
  without(names: Iterable<string>): Buffer {
    const dropped = new Set([...names].map((name) => Buffer.from(name).toString("latin1")));
    let isDropped = false;
    const kept = this.#bytes
      .split("\n")
      .filter((line) => {
        if (!line.startsWith("^")) {
          isDropped = !line.startsWith("#") && dropped.has(line.slice(line.indexOf(" ") + 1));
        }
        return !isDropped;
      })
      .join("\n");
    return Buffer.from(kept, "latin1");
  }
}

/** The names above a ref, without `refs`: `refs/heads` and `refs/heads/a` for `refs/heads/a/b`. */
export function foldersOf(name: string): string[] {
  const parts = name.split("/");
  return parts.slice(2).map((_, at) => parts.slice(0, at + 2).join("/"));
}

/** Removes a folder if it has no files, with the empty folders in it. Refs that were deleted leave such folders. */
export async function removeEmptyFolders(path: string): Promise<void> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    if (!entry.isDirectory()) return;
    await removeEmptyFolders(join(path, entry.name));
  }
  await rmdir(path).catch(() => undefined);
}

/** Removes the folders above a file that are empty, up to and without `top`. */
export async function removeEmptyParents(top: string, file: string): Promise<void> {
  for (let folder = dirname(file); folder.length > top.length; folder = dirname(folder)) {
    try {
      await rmdir(folder);
    } catch {
      return;
    }
  }
}

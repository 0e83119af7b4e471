import { randomBytes } from "node:crypto";
import { systemCode } from "@devplat/base";
import type { VolumeOptions } from "../options/volume-options.ts";
import { VolumeError } from "../errors/volume-error.ts";
import { AnchoredFolder } from "./anchored-folder.ts";

/** The link that is switched from one version of the content to the next, as in a Kubernetes volume (AtomicWriter). */
const DATA = "..data";
/** Names that belong to the writer of the content. */
const OWN = "..";
/** Permission bits of the owner: to write into a folder and to enter it. */
const OWNER_WRITES = 0o200;
const READ_TO_ENTER = 2;

export type ContentAccess = Pick<VolumeOptions, "mode" | "uid" | "gid">;

/**
 * The files of one volume: `..data` is a link to the folder of the newest version, and each name in the root is a link into
 * `..data`. Switching `..data` replaces all files in one step. A container may change its volume at any time.
 */
export class VolumeContent {
  readonly #parent: string;
  readonly #name: string;

  /** @param parent folder of all volumes, absolute @param name of the volume's own folder in it */
  constructor(parent: string, name: string) {
    this.#parent = parent;
    this.#name = name;
  }

  get path(): string {
    return `${this.#parent}/${this.#name}`;
  }

  /**
   * Replaces the content. A failure leaves the old content.
   * @param files content by path below the root
   * @throws VolumeError `content_unwritable`
   */
  async write(files: ReadonlyMap<string, Buffer>, access: ContentAccess): Promise<void> {
    await this.#guarded("written", async (parent) => {
      if (!(await parent.hasFolder(this.#name))) await parent.makeFolder(this.#name);
      await using root = await parent.child(this.#name);
      const version = `${OWN}${timestamp()}.${randomBytes(4).toString("hex")}`;
      try {
        await writeVersion(root, version, files, access);
        await root.setAccess(folderMode(access), access);
        await root.putLink(DATA, version);
      } catch (error) {
        await root.removeTree(version).catch(() => undefined);
        throw error;
      }
      await putNames(root, new Set([...files.keys()].map((path) => path.split("/", 1)[0] ?? "")));
      for (const { name } of await root.entries()) {
        if (name.startsWith(OWN) && name !== DATA && name !== version) await root.removeTree(name);
      }
    });
  }

  /** Whether there is content that was written completely. What a container has done to single files is not noticed. */
  async isWritten(): Promise<boolean> {
    try {
      await using parent = await AnchoredFolder.open(this.#parent);
      await using root = await parent.child(this.#name);
      const version = await root.linkTarget(DATA);
      return version !== undefined && !version.includes("/") && (await root.hasFolder(version));
    } catch {
      return false;
    }
  }

  /** Removes the content with its folder. @throws VolumeError `content_unwritable` */
  async wipe(): Promise<void> {
    await this.#guarded("removed", async (parent) => {
      if (!(await parent.hasFolder(this.#name))) return;
      {
        await using root = await parent.child(this.#name);
        // The secrets first: a container may have left a folder that this user cannot remove.
        const names = (await root.entries()).map(({ name }) => name);
        for (const name of names.toSorted((a, b) => Number(b.startsWith(OWN)) - Number(a.startsWith(OWN)))) {
          await root.removeTree(name);
        }
      }
      await parent.removeTree(this.#name);
    });
  }

  async #guarded(verb: string, action: (parent: AnchoredFolder) => Promise<void>): Promise<void> {
    try {
      await using parent = await AnchoredFolder.open(this.#parent);
      await action(parent);
    } catch (error) {
      if (error instanceof VolumeError) throw error;
      const code = systemCode(error);
      if (code === undefined) throw error;
      throw new VolumeError("content_unwritable", `the files of ${this.path} cannot be ${verb}: ${code}`, {
        hint: HINTS[code] ?? "Check who owns them; a container may have changed its volume.",
        cause: error,
      });
    }
  }
}

const HINTS: Readonly<Partial<Record<string, string>>> = {
  ENOSPC: "The file system of docker.volume_dir is full.",
  EDQUOT: "The quota of docker.volume_dir is used up.",
};

/** Writes all files into a new folder of the root. */
async function writeVersion(
  root: AnchoredFolder,
  version: string,
  files: ReadonlyMap<string, Buffer>,
  access: ContentAccess,
): Promise<void> {
  await root.makeFolder(version);
  await using top = await root.child(version);
  await writeLevel(
    top,
    [...files].map(([path, content]) => ({ segments: path.split("/"), content })),
    access,
  );
}

interface LevelFile {
  readonly segments: readonly string[];
  readonly content: Buffer;
}

async function writeLevel(
  folder: AnchoredFolder,
  files: readonly LevelFile[],
  access: ContentAccess,
): Promise<void> {
  const below = new Map<string, LevelFile[]>();
  for (const { segments, content } of files) {
    const [name = "", ...rest] = segments;
    if (rest.length === 0) {
      await folder.makeFile(name, content, access.mode, access);
    } else {
      const inner = below.get(name) ?? [];
      inner.push({ segments: rest, content });
      below.set(name, inner);
    }
  }
  for (const [name, inner] of below) {
    await folder.makeFolder(name);
    await using child = await folder.child(name);
    await writeLevel(child, inner, access);
  }
  await folder.setAccess(folderMode(access), access);
}

/** Links for names of the new version, and no others into `..data`. */
async function putNames(root: AnchoredFolder, names: ReadonlySet<string>): Promise<void> {
  for (const name of names) {
    if ((await root.linkTarget(name)) !== `${DATA}/${name}`) await root.putLink(name, `${DATA}/${name}`);
  }
  for (const { name } of await root.entries()) {
    if (!names.has(name) && (await root.linkTarget(name)) === `${DATA}/${name}`) await root.removeTree(name);
  }
}

/** Users who may read the files may list and enter their folders. The daemon itself also writes, unless it gives them away. */
function folderMode({ mode, uid }: ContentAccess): number {
  return mode | (mode >> READ_TO_ENTER) | (uid === undefined ? 0o500 | OWNER_WRITES : 0);
}

/** Time in the name of a version, in UTC, for people who look into the volume. */
function timestamp(): string {
  return new Date().toISOString().slice(0, 19).replaceAll(/[-:T]/g, "_");
}

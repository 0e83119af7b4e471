import { ifExists, writeAtomically } from "@devplat/base";
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, readFile, readdir, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { ensureFolder } from "../../agent-files/places.ts";
import { AgentError } from "../../errors.ts";
import { signatureOf } from "../../agent-files/file-signature.ts";

const PATH_SUFFIX = ".path";

/**
 * The old content of files that are just being written in place, so that a crash in the middle loses nothing: the next
 * cycle puts it back.
 */
export class InPlaceJournal {
  readonly #folder: string;

  /** @param state the state folder */
  constructor(state: string) {
    this.#folder = join(state, "in-place");
  }

  async begin(file: string, content: Buffer): Promise<void> {
    await ensureFolder(this.#folder);
    await writeAtomically(this.copyOf(file) + PATH_SUFFIX, file);
    await writeAtomically(this.copyOf(file), content);
  }

  async end(file: string): Promise<void> {
    await unlink(this.copyOf(file));
    await ifExists(unlink(this.copyOf(file) + PATH_SUFFIX));
  }

  /** Content of the file before a write that did not finish; undefined if there was no such write. */
  async read(file: string): Promise<Buffer | undefined> {
    return await ifExists(readFile(this.copyOf(file)));
  }

  /** The files whose write did not finish. */
  async unfinished(): Promise<string[]> {
    const names = (await ifExists(readdir(this.#folder))) ?? [];
    const files: string[] = [];
    for (const name of names.filter((each) => each.endsWith(PATH_SUFFIX))) {
      const file = await readFile(join(this.#folder, name), "utf8");
      // A path without a copy is of a write that had not begun, or was over.
      if (names.includes(name.slice(0, -PATH_SUFFIX.length))) files.push(file);
      else await unlink(join(this.#folder, name));
    }
    return files;
  }

  /** Path of the copy of the old content. */
  copyOf(file: string): string {
    return join(this.#folder, createHash("sha256").update(file).digest("hex"));
  }
}

/**
 * Writes a file that no rename may replace. What fails is taken back.
 *
 * @param base what the file held, which is put back when the writing fails
 * @param mode permission bits that it gets
 * @returns its signature
 * @throws AgentError `target_unwritable` where it could not be taken back: the next cycle tries again. Else the system's error
 */
export async function writeInPlace(
  file: string,
  base: Buffer,
  content: Buffer,
  mode: number,
  journal: InPlaceJournal,
): Promise<string> {
  await journal.begin(file, base);
  const handle = await openInPlace(file);
  try {
    if (((await handle.stat()).mode & 0o7777) !== mode) await handle.chmod(mode);
    await overwrite(handle, content);
    const signature = signatureOf(await handle.stat({ bigint: true }));
    await journal.end(file);
    return signature;
  } catch (error) {
    try {
      await overwrite(handle, base);
    } catch {
      throw new AgentError(
        "target_unwritable",
        `cannot write ${file}: it was written in part, and its old content cannot be put back`,
        {
          cause: error,
          remedy: "retry",
          hint: `The next sync tries again. Until then the old content is in ${journal.copyOf(file)}.`,
        },
      );
    }
    await journal.end(file);
    throw error;
  } finally {
    await handle.close();
  }
}

/** Puts back the old content of a file whose write in place did not finish. */
export async function finishInPlace(file: string, journal: InPlaceJournal): Promise<void> {
  const base = await journal.read(file);
  const handle = await ifExists(openInPlace(file));
  try {
    if (base !== undefined && handle !== undefined) await overwrite(handle, base);
    await journal.end(file);
  } finally {
    await handle?.close();
  }
}

/** No link: something else may have been put in the place of the file that was checked. */
async function openInPlace(file: string): Promise<FileHandle> {
  return await open(file, constants.O_RDWR | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0));
}

async function overwrite(handle: FileHandle, content: Buffer): Promise<void> {
  const { size } = await handle.stat();
  // The part that makes the file longer is written first: a full disk shows before anything is overwritten.
  await writeRange(handle, content, size, content.length);
  await writeRange(handle, content, 0, Math.min(size, content.length));
  await handle.truncate(content.length);
  await handle.sync();
}

async function writeRange(handle: FileHandle, content: Buffer, from: number, end: number): Promise<void> {
  for (let at = from; at < end;) {
    const { bytesWritten } = await handle.write(content, at, end - at, at);
    at += bytesWritten;
  }
}

import assert from "node:assert/strict";
import { chmod, cp, mkdir, open, readFile, rm, stat, symlink, truncate, utimes } from "node:fs/promises";
import { run } from "@devplat/testkit";

/** One way in which a disk, or a person, damages a file. */
export interface Damage {
  readonly name: string;
  apply(path: string): Promise<void>;
}

/** One bit, in place: size, inode and times stay, as when a disk forgets. @param at offset; negative: from the end */
export function flip(name: string, at: (bytes: Buffer) => number): Damage {
  return {
    name: `a bit changed in ${name}`,
    apply: async (path) => {
      const bytes = await readFile(path);
      const offset = at(bytes);
      const position = offset < 0 ? bytes.length + offset : offset;
      await inPlace(path, Buffer.from([bytes[position]! ^ 4]), position);
    },
  };
}

export const zeroFilled: Damage = {
  name: "zeros in its second half",
  apply: async (path) => {
    const { size } = await stat(path);
    await inPlace(path, Buffer.alloc(size - (size >> 1)), size >> 1);
  },
};

export const truncated: Damage = {
  name: "cut to its half",
  apply: async (path) => {
    await chmod(path, 0o600);
    await truncate(path, (await stat(path)).size >> 1);
  },
};

export const emptied: Damage = {
  name: "emptied",
  apply: async (path) => {
    await chmod(path, 0o600);
    await truncate(path, 0);
  },
};

export const missing: Damage = { name: "missing", apply: (path) => rm(path) };

export const folder: Damage = {
  name: "a folder in its place",
  apply: async (path) => {
    await rm(path);
    await mkdir(path);
  },
};

/** To open it waits for a writer, unless the reader says that it does not wait. */
export const pipe: Damage = {
  name: "a pipe in its place",
  apply: async (path) => {
    await rm(path);
    assert.equal((await run("mkfifo", [path])).code, 0);
  },
};

/** Reading it gives EIO, as from a bad sector, also to root. */
export const unreadable: Damage = {
  name: "unreadable",
  apply: async (path) => {
    await rm(path);
    await symlink("/proc/self/mem", path);
  },
};

/** Another undamaged file of the same kind. */
export function swapped(other: () => Promise<string> | string): Damage {
  return {
    name: "another valid file in its place",
    apply: async (path) => {
      await rm(path);
      await cp(await other(), path);
    },
  };
}

async function inPlace(path: string, bytes: Buffer, position: number): Promise<void> {
  const { atime, mtime, mode } = await stat(path);
  await chmod(path, 0o600);
  const handle = await open(path, "r+");
  try {
    await handle.write(bytes, 0, bytes.length, position);
  } finally {
    await handle.close();
  }
  await utimes(path, atime, mtime);
  await chmod(path, mode & 0o777);
}

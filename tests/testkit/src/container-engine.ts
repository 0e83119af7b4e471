import { copyFile, mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { TestkitError } from "./errors.ts";
import { onPath } from "./peer-programs.ts";
import { run, type Finished } from "./process.ts";

/** Name of the image that every engine here has: busybox, with a link for each of its programs here. */
export const BOX_IMAGE = "box";
const PROGRAMS = [
  "sh",
  "cat",
  "ls",
  "sleep",
  "ln",
  "rm",
  "mv",
  "mkdir",
  "kill",
  "touch",
  "id",
  "true",
  "readlink",
  "chmod",
];

/** A real container engine without a network. */
export interface ContainerEngine {
  /** Folder that the engine sees as its own in `/etc`: `/etc/docker` or `/etc/containers`. */
  readonly configuration: string;
  /** Runs its command line. */
  run(...args: readonly string[]): Promise<Finished>;
  /** Runs it and insists on success. @returns standard output without the last newline */
  ok(...args: readonly string[]): Promise<string>;
  stop(): Promise<void>;
}

/** An archive with the files of the image. */
export async function boxArchive(folder: string): Promise<string> {
  const busybox = onPath("busybox");
  if (busybox === undefined) throw TestkitError.missing("busybox");
  const root = join(folder, "image");
  await mkdir(join(root, "bin"), { recursive: true });
  await copyFile(busybox, join(root, "bin/busybox"));
  for (const name of PROGRAMS) await symlink("busybox", join(root, "bin", name));
  const archive = join(folder, "image.tar");
  const made = await run("tar", ["-C", root, "-cf", archive, "."]);
  if (made.code !== 0) throw TestkitError.failed("tar", made.stderr);
  return archive;
}

/** Runs a command line and insists on success. */
export function insist(
  program: string,
  cli: (...args: readonly string[]) => Promise<Finished>,
): (...args: readonly string[]) => Promise<string> {
  return async (...args) => {
    const { code, stdout, stderr } = await cli(...args);
    if (code !== 0) throw TestkitError.failed(`${program} ${args.join(" ")}`, stderr);
    return stdout.replace(/\n$/, "");
  };
}

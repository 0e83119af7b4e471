import { chmod, copyFile, cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { onPath, run, TestkitError } from "@devplat/testkit";

/** Libraries of a base: those that Node is linked with, except the one that the image of svc brings. */
const BASE_LIBRARIES = /^(?:ld-linux|lib(?:c|m|dl|pthread|stdc\+\+|gcc_s)\.)/;
const LIBRARY = /(?:=> )?(\/\S+\/(\S+)) \(0x/g;
const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt";

/** Files of an image. No registry can be reached, so images are made of what this machine has. */
export interface ImageFiles {
  /** Paths in the image by paths here: programs, which bring their libraries, and folders. */
  readonly copies?: Readonly<Record<string, string>>;
  /** Executable scripts by their paths in the image. */
  readonly scripts?: Readonly<Record<string, string>>;
  /** Other files. */
  readonly texts?: Readonly<Record<string, string>>;
  /** Empty folders. */
  readonly folders?: readonly string[];
  /** Programs of busybox. */
  readonly box?: readonly string[];
}

/** Fills a folder with the files of an image. */
export async function layOutImage(root: string, files: ImageFiles): Promise<void> {
  const at = async (path: string): Promise<string> => {
    const target = join(root, path);
    await mkdir(dirname(target), { recursive: true });
    return target;
  };
  for (const [path, source] of Object.entries(files.copies ?? {})) {
    await cp(source, await at(path), { recursive: true, dereference: true });
    await copyLibraries(source, at);
  }
  for (const [path, text] of Object.entries({ ...files.scripts, ...files.texts }))
    await writeFile(await at(path), text);
  for (const path of Object.keys(files.scripts ?? {})) await chmod(join(root, path), 0o755);
  for (const path of files.folders ?? []) await mkdir(join(root, path), { recursive: true });
  if (files.box === undefined) return;
  const busybox = onPath("busybox");
  if (busybox === undefined) throw TestkitError.missing("busybox");
  await copyFile(busybox, await at("bin/busybox"));
  for (const name of files.box) await symlink("busybox", join(root, "bin", name));
}

/** An archive of an image that has what small images have: a C library, libraries of the compiler, and certificates. */
export async function baseArchive(folder: string): Promise<string> {
  const root = join(folder, "base");
  await layOutImage(root, { copies: { [CERTIFICATES]: CERTIFICATES } });
  const target = async (path: string): Promise<string> => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    return join(root, path);
  };
  await copyLibraries(process.execPath, target, BASE_LIBRARIES);
  const archive = join(folder, "base.tar");
  const made = await run("tar", ["-C", root, "-cf", archive, "."]);
  if (made.code !== 0) throw TestkitError.failed("tar", made.stderr);
  return archive;
}

/** Copies the libraries that a program is linked with. A script or a folder has none. */
async function copyLibraries(
  program: string,
  target: (path: string) => Promise<string>,
  only = /^/,
): Promise<void> {
  const { stdout } = await run("ldd", [program]);
  for (const [, library = "", name = ""] of stdout.matchAll(LIBRARY)) {
    if (only.test(name)) await copyFile(library, await target(library));
  }
}

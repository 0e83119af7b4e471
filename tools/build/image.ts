/** `npm run build:image`: dist/image, the context of deploy/image/Dockerfile for the platform of this machine (Linux with glibc). */
import { execFileSync } from "node:child_process";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { stripElf } from "./single/strip-elf.ts";
import { buildSvc } from "./svc.ts";

const ROOT = resolve(import.meta.dirname, "../..");

/**
 * Makes the context of the image: the release of the service, a Node without symbols, and the library that small images lack.
 *
 * @param folder is emptied first
 */
export async function buildImageContext(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  const home = join(folder, "opt/svc");
  await mkdir(join(folder, "opt"), { recursive: true });
  await buildSvc(home);
  for (const each of [join(home, "bin"), join(home, "lib64"), ...WRITABLE.map((path) => join(folder, path))])
    await mkdir(each, { recursive: true });
  const node = join(home, "bin/node");
  await writeFile(node, stripElf(await readFile(process.execPath)), { mode: 0o755 });
  await copyFile(libraryOf(process.execPath, "libatomic.so.1"), join(home, "lib64/libatomic.so.1"));
  await copyFile(join(ROOT, "deploy/image/healthcheck.mjs"), join(home, "healthcheck.mjs"));
  await copyFile(join(ROOT, "deploy/image/Dockerfile"), join(folder, "Dockerfile"));
}

/** Folders that volumes are mounted on. */
const WRITABLE = ["var/lib/svc", "var/cache/svc", "tmp/svc-compile"];

/** Path of a library that a program is linked with. */
function libraryOf(program: string, name: string): string {
  const [, path] =
    new RegExp(`${name.replaceAll(".", "\\.")} => (\\S+)`).exec(
      execFileSync("ldd", [program], { encoding: "utf8" }),
    ) ?? [];
  if (path === undefined) throw new Error(`Cannot build the image: ${program} is not linked with ${name}`);
  return path;
}

if (import.meta.main) await buildImageContext(resolve(ROOT, "dist/image"));

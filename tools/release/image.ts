/** `npm run build:image`: dist/image, the context of deploy/image/Dockerfile for the platform of this machine (Linux with glibc). */
import { execFileSync } from "node:child_process";
import { chmod, copyFile, mkdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import manifest from "../../apps/svc/package.json" with { type: "json" };
import { stripElf } from "../build/single/strip-elf.ts";
import { bundleFolder } from "../build/svc.ts";
import { bundledPackages } from "./bundled-packages.ts";
import { documentsOf } from "./documents.ts";
import { sbom } from "./sbom.ts";
import { ROOT } from "../build/root.ts";
import { readSource } from "./source.ts";

/** Library that Node is linked with and small images lack. It is part of GCC. */
const LIBRARY = { name: "libatomic", file: "libatomic.so.1" };
const LIBRARY_LICENSE = "GPL-3.0-or-later WITH GCC-exception-3.1";

/** Documents of the release that the image has, too. */
const DOCUMENTS = ["LICENSE", "THIRD-PARTY"];

/** Folders that volumes are mounted on. */
const WRITABLE = ["var/lib/svc", "var/cache/svc", "tmp/svc-compile"];

/**
 * Makes the context of the image: the release of the service, a Node without symbols, the library that small images lack, and the
 * list of all these components.
 *
 * @param folder is emptied first
 */
export async function buildImageContext(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  const home = join(folder, "opt/svc");
  await mkdir(join(folder, "opt"), { recursive: true });
  const { metafile } = await bundleFolder(home);
  for (const each of [join(home, "bin"), join(home, "lib64"), ...WRITABLE.map((path) => join(folder, path))])
    await mkdir(each, { recursive: true });
  // A base may have no /tmp. A tmpfs on it takes its mode.
  const temporary = join(folder, "system/tmp");
  await mkdir(temporary, { recursive: true });
  await chmod(temporary, 0o1777);
  const node = join(home, "bin/node");
  await writeFile(node, stripElf(await readFile(process.execPath)), { mode: 0o755 });
  const library = libraryOf(process.execPath, LIBRARY.file);
  await copyFile(library, join(home, "lib64", LIBRARY.file));
  await copyFile(join(ROOT, "deploy/image/healthcheck.mjs"), join(home, "healthcheck.mjs"));
  await copyFile(join(ROOT, "deploy/image/Dockerfile"), join(folder, "Dockerfile"));

  const { version } = manifest;
  const { epoch } = readSource();
  const packages = await bundledPackages([metafile]);
  const runtime = process.versions;
  const systemLibraries = [
    { name: LIBRARY.name, version: await versionOf(library), license: LIBRARY_LICENSE },
  ];
  const components = sbom({
    name: "svc",
    version,
    epoch,
    packages,
    runtime,
    otherNodes: [],
    systemLibraries,
  });
  await writeFile(join(home, "svc.cdx.json"), components);
  const documents = await documentsOf("svc", { version, epoch, packages, nodes: [runtime.node] });
  for (const name of DOCUMENTS) await writeFile(join(home, name), documents.get(name) ?? "");
}

/** Path of a library that a program is linked with. */
function libraryOf(program: string, name: string): string {
  const [, path] =
    new RegExp(`${name.replaceAll(".", "\\.")} => (\\S+)`).exec(
      execFileSync("ldd", [program], { encoding: "utf8" }),
    ) ?? [];
  if (path === undefined) throw new Error(`Cannot build the image: ${program} is not linked with ${name}`);
  return path;
}

/** Version of a shared library, from the name of the file that its link leads to, such as `libatomic.so.1.2.0`. */
async function versionOf(library: string): Promise<string> {
  return basename(await realpath(library)).replace(/^.*\.so\./, "");
}

if (import.meta.main) await buildImageContext(resolve(ROOT, "dist/image"));

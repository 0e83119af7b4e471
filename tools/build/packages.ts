import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, posix, resolve } from "node:path";
import { promisify } from "node:util";
import { compiledPath, packedManifest, type Manifest } from "./packed-manifest.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const PACKAGES = join(ROOT, "packages");
/** Packages that other projects install. {@link buildPackages} compiles them as `packages.tsconfig.json` says. */
export const PUBLISHED = ["git-protocol", "git-store"] as const;
const DOCUMENTS = ["README.md", "API.md", "CHANGELOG.md"] as const;

/** A package as other projects install it. */
export interface BuiltPackage {
  readonly name: string;
  readonly version: string;
  /** Content by path, in the order of the paths. */
  readonly files: ReadonlyMap<string, Buffer>;
}

/**
 * Compiles the published packages to ES modules with types and source maps. A package contains the packages of this
 * repository that it imports.
 */
export async function buildPackages(): Promise<BuiltPackage[]> {
  const folder = await mkdtemp(join(tmpdir(), "devplat-packages-"));
  try {
    await compile(folder);
    const manifests = new Map<string, Manifest>();
    for (const name of PUBLISHED) {
      const text = await readFile(join(PACKAGES, name, "package.json"), "utf8");
      manifests.set(name, JSON.parse(text) as Manifest);
    }
    return await Promise.all(PUBLISHED.map(async (name) => assemble(name, folder, manifests)));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function compile(folder: string): Promise<void> {
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  const settings = join(import.meta.dirname, "packages.tsconfig.json");
  try {
    await promisify(execFile)(process.execPath, [compiler, "-p", settings, "--outDir", folder]);
  } catch (error) {
    const { stdout = "" } = error as { stdout?: string };
    throw new Error(`Cannot compile the packages: tsc found errors. Repair them:\n${stdout}`, {
      cause: error,
    });
  }
}

/** Places of a package and of those that it contains, in the folder `dist`. */
interface Layout {
  /** Path of the folder of each package's code. */
  readonly folders: ReadonlyMap<string, string>;
  readonly manifests: ReadonlyMap<string, Manifest>;
}

async function assemble(
  name: string,
  compiled: string,
  manifests: ReadonlyMap<string, Manifest>,
): Promise<BuiltPackage> {
  const manifest = manifestOf(name, manifests);
  const inside = Object.keys(manifest.dependencies ?? {}).map(nameOf);
  const layout = {
    folders: new Map([[name, "dist"], ...inside.map((each) => [each, `dist/${each}`] as const)]),
    manifests,
  };
  const files = new Map<string, Buffer>();
  for (const [part, folder] of layout.folders) {
    const source = join(compiled, part, "src");
    for (const path of globSync("**/*", { cwd: source, withFileTypes: false })) {
      if (!/\.(?:js|d\.ts|js\.map)$/.test(path)) continue;
      const text = await readFile(join(source, path), "utf8");
      const placed = posix.join(folder, path);
      files.set(placed, Buffer.from(rewritten(placed, text, { ...layout, path, part })));
    }
  }
  for (const [path, content] of files) checkSpecifiers(name, path, content.toString(), files);
  for (const document of DOCUMENTS) files.set(document, await readFile(join(PACKAGES, name, document)));
  files.set("LICENSE", await readFile(join(ROOT, "LICENSE")));
  files.set("package.json", Buffer.from(`${JSON.stringify(packedManifest(manifest), undefined, 2)}\n`));
  const { name: fullName, version } = manifest;
  return { name: fullName, version, files: new Map([...files].toSorted(([a], [b]) => (a < b ? -1 : 1))) };
}

/** Name of a package without the scope. */
function nameOf(dependency: string): string {
  return dependency.replace("@devplat/", "");
}

function manifestOf(name: string, manifests: ReadonlyMap<string, Manifest>): Manifest {
  const manifest = manifests.get(name);
  if (manifest !== undefined) return manifest;
  throw new Error(
    `Cannot build the packages: "${name}" is a dependency, and is not published. Add it to PUBLISHED`,
  );
}

interface Compiled extends Layout {
  /** Path below `src`. */
  readonly path: string;
  /** Package of the file. */
  readonly part: string;
}

/** Text of a compiled file for its place in the package. */
function rewritten(placed: string, text: string, compiled: Compiled): string {
  if (placed.endsWith(".map")) return mapFor(text, compiled);
  const packages = text.replaceAll(
    /(\bfrom |\bimport\()"@devplat\/([\w-]+)(\/[^"]+)?"/g,
    (_whole, before: string, name: string, entry = "") =>
      `${before}"${specifierOf(placed, name, `.${String(entry)}`, compiled)}"`,
  );
  // tsc leaves the names of threads' modules, and those of types, as they are in the sources.
  if (!placed.endsWith(".d.ts"))
    return packages.replaceAll(/(\bnew URL\("[^"]+)\.ts(", import\.meta\.url\))/g, "$1.js$2");
  const types = packages.replaceAll(/(\bfrom |\bimport\()"(\.[^"]+)\.ts"/g, `$1"$2.js"`);
  // Compilers since TypeScript 6 load the types of Node only when a file or a setting asks for them.
  return /\bBuffer\b|\bNodeJS\.|"node:/.test(types) ? `/// <reference types="node" />\n${types}` : types;
}

/** Relative path from a file to the entry of a package inside the same package. */
function specifierOf(placed: string, name: string, entry: string, layout: Layout): string {
  const source = manifestOf(name, layout.manifests).exports[entry];
  const folder = layout.folders.get(name);
  if (source === undefined || folder === undefined) {
    throw new Error(
      `Cannot build the packages: ${placed} imports "@devplat/${name}" by "${entry}", which its package.json does not export`,
    );
  }
  const target = posix.join(folder, compiledPath(source).replace("./dist/", ""));
  const relative = posix.relative(posix.dirname(placed), target);
  return relative.startsWith(".") ? relative : `./${relative}`;
}

/** Source map with the path of the source in this repository. It depends on no folder of the build. */
function mapFor(text: string, { part, path }: Compiled): string {
  const source = `packages/${part}/src/${path.replace(/\.js\.map$/, ".ts")}`;
  return JSON.stringify({ ...(JSON.parse(text) as object), sources: [source] });
}

/** Throws if a file names a module that is not in the package. */
function checkSpecifiers(name: string, path: string, text: string, files: ReadonlyMap<string, Buffer>): void {
  if (path.endsWith(".map")) return;
  for (const [, specifier = ""] of text.matchAll(/(?:\bfrom |\bimport\(|\bnew URL\()"([^"]+)"/g)) {
    const target = posix.join(posix.dirname(path), specifier);
    if (specifier.startsWith("node:") || files.has(target)) continue;
    throw new Error(`Cannot build ${name}: ${path} imports "${specifier}", which is not in the package`);
  }
}

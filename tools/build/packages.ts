import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, posix, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { build, type Plugin } from "esbuild";
import { entryName, packedManifest, typesPath, type Manifest } from "./packed-manifest.ts";
import { ROOT } from "./root.ts";

const PACKAGES = join(ROOT, "packages");
/** Packages that other projects install. `packages.tsconfig.json` names their sources. */
export const PUBLISHED = ["git-protocol", "git-store"] as const;
const DOCUMENTS = ["README.md", "API.md", "CHANGELOG.md"] as const;
/** Syntax of Node 22. It lacks `using`. */
const TARGET = "es2022";

/** A package as other projects install it. */
export interface BuiltPackage {
  readonly name: string;
  readonly version: string;
  /** Content by path, in the order of the paths. */
  readonly files: ReadonlyMap<string, Buffer>;
}

/**
 * Builds the published packages: ES modules with types and source maps. A package contains the packages of this repository
 * that it imports.
 */
export async function buildPackages(): Promise<BuiltPackage[]> {
  const folder = await mkdtemp(join(tmpdir(), "devplat-packages-"));
  try {
    await writeTypes(folder);
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

async function writeTypes(folder: string): Promise<void> {
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  const settings = join(import.meta.dirname, "packages.tsconfig.json");
  try {
    await promisify(execFile)(process.execPath, [compiler, "-p", settings, "--outDir", folder]);
  } catch (error) {
    const { stdout = "" } = error as { stdout?: string };
    throw new Error(`Cannot build the packages: tsc found errors. Repair them:\n${stdout}`, {
      cause: error,
    });
  }
}

async function assemble(
  name: string,
  compiled: string,
  manifests: ReadonlyMap<string, Manifest>,
): Promise<BuiltPackage> {
  const manifest = manifestOf(name, manifests);
  const inside = Object.keys(manifest.dependencies ?? {}).map(nameOf);
  const folders = new Map([
    [name, "dist/types"],
    ...inside.map((each) => [each, `dist/types/${each}`] as const),
  ]);
  const files = new Map(await bundle(name, manifest));
  for (const [part, folder] of folders) {
    const source = join(compiled, part, "src");
    for (const path of globSync("**/*.d.ts", { cwd: source })) {
      const placed = posix.join(folder, path);
      const text = await readFile(join(source, path), "utf8");
      files.set(placed, Buffer.from(typesFor(placed, text, { folders, manifests })));
    }
  }
  for (const [path, content] of files) checkSpecifiers(name, path, content.toString(), files);
  for (const document of DOCUMENTS) files.set(document, await readFile(join(PACKAGES, name, document)));
  files.set("LICENSE", await readFile(join(ROOT, "LICENSE")));
  files.set("package.json", Buffer.from(`${JSON.stringify(packedManifest(manifest), undefined, 2)}\n`));
  return {
    name: manifest.name,
    version: manifest.version,
    files: new Map([...files].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
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

/** Code of each entry of a package, with the code that entries share in files of its own. */
async function bundle(name: string, { exports }: Manifest): Promise<[path: string, content: Buffer][]> {
  const folder = join(PACKAGES, name);
  const entries = Object.entries(exports).map(
    ([entry, source]) => [entryName(entry), join(folder, source)] as const,
  );
  // A name only: nothing is written there.
  const outdir = join(folder, "dist");
  const { outputFiles } = await build({
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    splitting: true,
    target: TARGET,
    entryPoints: Object.fromEntries(entries),
    outdir,
    chunkNames: "shared-[hash]",
    sourcemap: "linked",
    logLevel: "error",
    plugins: [threadsOf(new Map(entries.map(([entry, source]) => [source, entry])))],
  });
  return outputFiles.map(({ path, text }) => [
    relative(folder, path),
    Buffer.from(path.endsWith(".map") ? sourcesFromRoot(text, outdir) : text),
  ]);
}

/** Modules of threads are entries: `new URL("….ts", import.meta.url)` names the code of that entry instead. */
function threadsOf(entries: ReadonlyMap<string, string>): Plugin {
  return {
    name: "threads",
    setup: (bundling) => {
      bundling.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const text = await readFile(path, "utf8");
        const contents = text.replaceAll(
          /\bnew URL\("([^"]+\.ts)", import\.meta\.url\)/g,
          (_whole, source: string) => {
            const entry = entries.get(join(path, "..", source));
            if (entry !== undefined) return `new URL("./${entry}.js", import.meta.url)`;
            throw new Error(
              `Cannot bundle ${path}: its package.json does not export "${source}", which a thread runs`,
            );
          },
        );
        return { contents, loader: "ts" };
      });
    },
  };
}

/** Source map with paths from the root of the repository. They depend on no folder of the build. */
function sourcesFromRoot(text: string, outdir: string): string {
  const map = JSON.parse(text) as { sources: readonly string[] };
  return JSON.stringify({
    ...map,
    sources: map.sources.map((path) => relative(ROOT, resolve(outdir, path))),
  });
}

/** Places of the types of a package, and of those that it contains. */
interface Layout {
  /** Path of the folder of each package's types. */
  readonly folders: ReadonlyMap<string, string>;
  readonly manifests: ReadonlyMap<string, Manifest>;
}

/** Text of a file of types for its place in the package. */
function typesFor(placed: string, text: string, layout: Layout): string {
  const types = text
    .replaceAll(
      /(\bfrom |\bimport\()"@devplat\/([\w-]+)(\/[^"]+)?"/g,
      (_whole, before: string, name: string, entry = "") =>
        `${before}"${specifierOf(placed, name, `.${String(entry)}`, layout)}"`,
    )
    // tsc leaves the names of modules as they are in the sources.
    .replaceAll(/(\bfrom |\bimport\()"(\.[^"]+)\.ts"/g, `$1"$2.js"`);
  // Compilers since TypeScript 6 load the types of Node only when a file or a setting asks for them.
  return /\bBuffer\b|\bNodeJS\.|"node:/.test(types) ? `/// <reference types="node" />\n${types}` : types;
}

/** Relative path from a file of types to those of an entry of a package inside the same package. */
function specifierOf(placed: string, name: string, entry: string, layout: Layout): string {
  const source = manifestOf(name, layout.manifests).exports[entry];
  const folder = layout.folders.get(name);
  if (source === undefined || folder === undefined) {
    throw new Error(
      `Cannot build the packages: ${placed} imports "@devplat/${name}" by "${entry}", which its package.json does not export`,
    );
  }
  const target = posix.join(folder, typesPath(source).replace("./dist/types/", ""));
  const path = posix.relative(posix.dirname(placed), target.replace(/\.d\.ts$/, ".js"));
  return path.startsWith(".") ? path : `./${path}`;
}

/** Throws if a file names a module that is not in the package. */
function checkSpecifiers(name: string, path: string, text: string, files: ReadonlyMap<string, Buffer>): void {
  if (path.endsWith(".map")) return;
  for (const [, specifier = ""] of text.matchAll(/(?:\bfrom |\bimport\(|\bnew URL\()"([^"]+)"/g)) {
    const target = posix.join(posix.dirname(path), specifier);
    const wanted = path.endsWith(".d.ts") ? target.replace(/\.js$/, ".d.ts") : target;
    if (specifier.startsWith("node:") || files.has(wanted)) continue;
    throw new Error(`Cannot build ${name}: ${path} imports "${specifier}", which is not in the package`);
  }
}

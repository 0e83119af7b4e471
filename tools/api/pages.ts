import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { API, SymbolFlags, type Project, type Symbol } from "typescript/unstable/sync";
import { PUBLISHED, buildPackages, type BuiltPackage } from "../build/packages.ts";
import { renderPage, type ApiEntry, type ApiExport } from "./render.ts";

/** API pages of the published packages, by path from the root of the repository. */
export async function apiPages(): Promise<Map<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), "devplat-api-"));
  try {
    const packages = await buildPackages();
    for (const { name, files } of packages) await writePackage(join(folder, "node_modules", name), files);
    const found = await readEntries(folder, packages);
    return new Map([...found].map(([name, entries]) => [pagePath(name), renderPage(name, entries)]));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function pagePath(name: string): string {
  return `packages/${name.replace("@devplat/", "")}/API.md`;
}

async function writePackage(folder: string, files: BuiltPackage["files"]): Promise<void> {
  for (const [path, content] of files) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
  }
}

/** Entries of each package, as the compiler sees its declarations. */
async function readEntries(
  folder: string,
  packages: readonly BuiltPackage[],
): Promise<Map<string, ApiEntry[]>> {
  const entries = packages.flatMap(({ name, files }) =>
    typesOf(files).map(([entry, types]) => ({
      package: name,
      name: join(name, entry),
      file: join(folder, "node_modules", name, types),
    })),
  );
  const settings = join(folder, "tsconfig.json");
  const compilerOptions = { module: "nodenext", target: "es2022", types: [], noEmit: true };
  await writeFile(settings, JSON.stringify({ compilerOptions, files: entries.map(({ file }) => file) }));
  const api = new API({ cwd: folder });
  try {
    const [project] = api.updateSnapshot({ openProject: settings }).getProjects();
    if (project === undefined) throw new Error("Cannot make the API pages: the compiler opened no project");
    const described = entries.map((entry) => ({
      package: entry.package,
      name: entry.name,
      exports: exportsOf(project, entry.file),
    }));
    return Map.groupBy(described, (entry) => entry.package);
  } finally {
    api.close();
  }
}

/** Each entry of a package, with the path of its types. */
function typesOf(files: BuiltPackage["files"]): [entry: string, types: string][] {
  const manifest = JSON.parse(files.get("package.json")?.toString() ?? "{}") as {
    exports: Record<string, { types?: string }>;
  };
  return Object.entries(manifest.exports).flatMap(([entry, { types }]) =>
    types === undefined ? [] : [[entry, types] as [string, string]],
  );
}

function exportsOf(project: Project, file: string): ApiExport[] {
  const { checker, program } = project;
  const source = program.getSourceFile(file);
  const module = source === undefined ? undefined : checker.getSymbolAtLocation(source);
  if (module === undefined) return [];
  return checker.getExportsOfModule(module).map((exported) => {
    const isAlias = (exported.flags & SymbolFlags.Alias) !== 0;
    return describeExport(project, exported.name, isAlias ? checker.getAliasedSymbol(exported) : exported);
  });
}

function describeExport(project: Project, name: string, symbol: Symbol): ApiExport {
  const nodes = symbol.declarations.map((declaration) => declaration.resolve(project));
  const declarations = nodes.flatMap((node) =>
    node === undefined ? [] : [node.getSourceFile().text.slice(node.getStart(), node.end)],
  );
  const isVariable = (symbol.flags & SymbolFlags.Variable) !== 0;
  return {
    name,
    origin: originOf(nodes[0]?.getSourceFile().fileName ?? ""),
    documentation: project.checker.getDocumentationCommentOfSymbol(symbol),
    tags: project.checker
      .getJsDocTagsOfSymbol(symbol)
      .map((tag) => ({ name: tag.name, text: tag.text ?? "" })),
    declaration: isVariable ? `const ${declarations.join("")};` : declarations.join("\n"),
  };
}

/** Package of a file that another package contains. */
function originOf(file: string): string | undefined {
  const [, inside = ""] = /\/dist\/types\/([\w-]+)\//.exec(file) ?? [];
  return PUBLISHED.some((name) => name === inside) ? `@devplat/${inside}` : undefined;
}

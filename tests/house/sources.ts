import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");

/** A workspace: an app, a package, or the test kit. */
export interface Workspace {
  /** From the root: `apps/svc`, `packages/base`, … */
  readonly folder: string;
  /** As others import it. */
  readonly name: string;
  readonly exports: readonly string[];
  readonly dependencies: readonly string[];
}

export interface Source {
  /** From the root. */
  readonly path: string;
  readonly text: string;
  readonly workspace: Workspace | undefined;
  /** Every module that it names, statically or by `import()`. */
  readonly imports: readonly string[];
  readonly isTest: boolean;
}

export function readWorkspaces(): Workspace[] {
  return globSync(["apps/*/package.json", "packages/*/package.json", "tests/testkit/package.json"], {
    cwd: ROOT,
  }).map((path) => {
    const manifest = JSON.parse(readFileSync(join(ROOT, path), "utf8")) as {
      name: string;
      exports?: Record<string, unknown>;
      dependencies?: Record<string, string>;
    };
    return {
      folder: path.replace(/\/package\.json$/, ""),
      name: manifest.name,
      exports: Object.keys(manifest.exports ?? {}),
      dependencies: Object.keys(manifest.dependencies ?? {}),
    };
  });
}

/** All TypeScript and CommonJS of the repository, node_modules apart. */
export function readSources(workspaces: readonly Workspace[]): Source[] {
  return globSync(
    ["apps", "packages", "tests", "tools", "bench"].map((folder) => `${folder}/**/*.{ts,cjs}`),
    {
      cwd: ROOT,
      exclude: (name) => name === "node_modules",
    },
  ).map((path) => {
    const text = readFileSync(join(ROOT, path), "utf8");
    return {
      path,
      text,
      workspace: workspaces.find(({ folder }) => path.startsWith(`${folder}/`)),
      imports: importsOf(text),
      isTest: /\.(test|soak|test-kit)\.ts$|^tests\/|\/test\//.test(path),
    };
  });
}

/** Every text of the repository that a person wrote: sources, scripts, documents, configuration. */
export function readTexts(): { path: string; text: string }[] {
  return globSync(["**/*.{ts,cjs,md,sh,css,json,yaml,yml}", ".ci/*", "apps/*/bin/*", "*.*", ".*.json"], {
    cwd: ROOT,
    exclude: (name) => SKIPPED.has(name),
  }).map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
}

/** Folders of foreign or generated files. `npm start` writes `data`. */
const SKIPPED = new Set(["node_modules", ".git", "data", "results", ".work", "coverage"]);

const IMPORTS = [
  /^\s*(?:import|export)\b[^"';]*?\bfrom\s*"([^"]+)"/gm,
  /^\s*import\s*"([^"]+)"/gm,
  /\b(?:import|require)\(\s*"([^"]+)"\s*\)/g,
];

/** The modules that a text names, by the forms that oxfmt leaves of import, export-from, import() and require(). */
export function importsOf(text: string): string[] {
  return IMPORTS.flatMap((pattern) => [...text.matchAll(pattern)].map((found) => found[1] ?? ""));
}

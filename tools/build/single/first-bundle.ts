import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build, type Metafile } from "esbuild";
import { ROOT } from "../root.ts";
import { narrow } from "../narrow.ts";

const FIRST = resolve(import.meta.dirname, "first.ts");

export interface FirstParts {
  /** Name of the command, such as `svc`. */
  readonly name: string;
  readonly version: string;
  /** Asset with the text of the program. */
  readonly bundle: string;
  /** Runs before, and imports `./main.ts` to go on. Default: nothing. */
  readonly before?: string;
}

/**
 * Bundles what a single executable runs first (`first.ts`).
 *
 * @param folder exists
 */
export async function bundleFirst(
  folder: string,
  { before = FIRST, ...program }: FirstParts,
): Promise<{ readonly main: string; readonly metafile: Metafile }> {
  const main = join(folder, `${program.name}.cjs`);
  const { metafile } = await build({
    absWorkingDir: ROOT,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node26",
    entryPoints: [before],
    outfile: main,
    metafile: true,
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: "inline",
    logLevel: "error",
    supported: { "dynamic-import": false },
    define: { PROGRAM: JSON.stringify(program) },
    plugins: [
      {
        name: "first",
        setup: (bundle) => bundle.onResolve({ filter: /^\.\/main\.ts$/ }, () => ({ path: FIRST })),
      },
    ],
  });
  await narrow(main);
  return { main, metafile };
}

/** Makes a bundle in CommonJS the text that `first.ts` runs: a function with the parameters of a module. */
export async function wrapBundle(file: string): Promise<void> {
  const text = await readFile(file, "utf8");
  await writeFile(file, `(function (exports, require, module, __filename, __dirname) {${text}\n})`);
}

/**
 * The compiled code of a program's bundle: one for each command with a list of functions, and one for all others.
 *
 * @param started names by `functionsOf`, for each command that has a list
 */
export function compiledCodes(
  asset: string,
  started: Readonly<Record<string, readonly string[]>>,
): Record<string, { readonly asset: string; readonly functions: readonly string[] }> {
  const lists = Object.entries(started).map(
    ([command, functions]) => [`${asset}.${command}.code`, functions] as const,
  );
  return Object.fromEntries(
    [[`${asset}.code`, []] as const, ...lists].map(([key, functions]) => [key, { asset, functions }]),
  );
}

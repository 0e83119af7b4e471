import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build, type Metafile } from "esbuild";
import { COMMON } from "../agent.ts";
import { narrow } from "../narrow.ts";
import { BUNDLE } from "./program-bundle.ts";

const FIRST = resolve(import.meta.dirname, "first.ts");

export interface FirstParts {
  /** Name of the command, such as `svc`. */
  readonly name: string;
  readonly version: string;
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
    ...COMMON,
    entryPoints: [before],
    outfile: main,
    metafile: true,
    define: { PROGRAM: JSON.stringify({ ...program, bundle: BUNDLE }) },
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

import { execFile } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { compiledBundle, FIXED_HASHES, useRandomHashes } from "./compiled-code.ts";
import { stripElf } from "./strip-elf.ts";

/** Parts of a single executable. */
export interface SingleFileParts {
  /** Bundle in CommonJS that is run. */
  readonly main: string;
  /** Files that the program reads as assets, by name. */
  readonly assets: Readonly<Record<string, string>>;
  /**
   * Compiled code that is kept as assets as well, by name: the asset that is compiled, and the functions (`functionsOf`) that are compiled
   * with it.
   */
  readonly compiled?: Readonly<
    Record<string, { readonly asset: string; readonly functions: readonly string[] }>
  >;
  /** Flags of the engine that the program runs with. */
  readonly engineFlags: readonly string[];
  /** Flags of Node that the program runs with. */
  readonly nodeFlags: readonly string[];
  /** Node of the platform. */
  readonly node: string;
  /** Whether `node` is for this machine: then the code is compiled ahead. */
  readonly isOwnPlatform: boolean;
}

/**
 * Makes a single executable application of Node. Equal parts give equal bytes.
 *
 * @param output path of the executable
 */
export async function singleFile(parts: SingleFileParts, output: string): Promise<void> {
  const { main, assets, compiled = {}, engineFlags, nodeFlags, node, isOwnPlatform } = parts;
  const flags = [...nodeFlags, ...engineFlags];
  const folder = await mkdtemp(join(tmpdir(), "single-file-"));
  try {
    const executable = join(folder, "node");
    // Compiled code and the error messages of the program name the main file as it is given here.
    await writeFile(join(folder, basename(main)), await readFile(main));
    await writeFile(executable, stripElf(await readFile(node)), { mode: 0o755 });
    const code: Record<string, string> = {};
    for (const [key, { asset, functions }] of isOwnPlatform ? Object.entries(compiled) : []) {
      code[key] = join(folder, key);
      await writeFile(code[key], compiledBundle(assets[asset] ?? "", asset, functions, flags));
    }
    const config = {
      main: basename(main),
      output: "program",
      executable,
      assets: { ...assets, ...code },
      useCodeCache: isOwnPlatform,
      disableExperimentalSEAWarning: true,
      execArgv: flags,
    };
    await writeFile(join(folder, "sea.json"), JSON.stringify(config));
    await promisify(execFile)(process.execPath, [...flags, FIXED_HASHES, "--build-sea", "sea.json"], {
      cwd: folder,
    });
    const program = await readFile(join(folder, "program"));
    if (isOwnPlatform) useRandomHashes(program, process.execPath, engineFlags);
    await writeFile(output, program);
    await chmod(output, 0o755);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

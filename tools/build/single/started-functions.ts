import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ProgramName } from "./program.ts";
import { BUNDLE } from "./program-bundle.ts";

const FOLDER = resolve(import.meta.dirname, "started");

/** The file with the functions that a command calls until it has done its first work, one a line. `npm run record:start` writes it. */
export function startedFile(program: ProgramName, command: string): string {
  return join(FOLDER, `${program}-${command}.txt`);
}

/** The recorded functions (0078) of a program's commands, by command. */
export function startedFunctions(program: ProgramName): Record<string, readonly string[]> {
  const lists = readdirSync(FOLDER).flatMap((file) => {
    const command = file.match(new RegExp(`^${program}-(\\w+)\\.txt$`))?.[1];
    return command === undefined ? [] : [[command, linesOf(join(FOLDER, file))] as const];
  });
  return Object.fromEntries(lists.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** The compiled code of a program's bundle: one for each command with a list of functions, and one for all others. */
export function compiledCodes(
  program: ProgramName,
): Record<string, { readonly asset: string; readonly functions: readonly string[] }> {
  const lists = Object.entries(startedFunctions(program)).map(
    ([command, functions]) => [`${BUNDLE}.${command}.code`, { asset: BUNDLE, functions }] as const,
  );
  return Object.fromEntries([[`${BUNDLE}.code`, { asset: BUNDLE, functions: [] }] as const, ...lists]);
}

function linesOf(file: string): string[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");
}

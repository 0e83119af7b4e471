import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { functionsOf } from "./functions.ts";

const COMPILE_BUNDLE = resolve(import.meta.dirname, "compile-bundle.ts");
/** Bytes that compiled code of a bundle may have. */
const MAX_CODE = 64 * 1024 * 1024;

/**
 * V8 mixes a random number into its hash tables, and compiled code holds their order. With a fixed number, two builds give
 * equal bytes. The number is part of the flags that the code names, and the program must run with a random one: so the name of
 * the flags is replaced. Hashes are computed again when the code is loaded, as with any compiled code of another process.
 */
export const FIXED_HASHES = "--hash-seed=1";

/** Threads of V8 that work next to the compiler change some fields of the code. */
const ONE_THREAD = "--single-threaded";

/** Start of compiled code: 4 bytes each for magic number, version of V8, source, flags. */
const FLAGS_AT = 12;
const SAME_FOR_ALL = 8;

/**
 * Makes the compiled code in an executable fit a process without {@link FIXED_HASHES}, in place.
 *
 * @param node compiled the code
 * @param flags of the engine, which the program runs with
 */
export function useRandomHashes(executable: Buffer, node: string, flags: readonly string[]): void {
  const seeded = headerOf(node, [...flags, FIXED_HASHES]);
  const random = headerOf(node, flags);
  const places: number[] = [];
  const start = seeded.subarray(0, SAME_FOR_ALL);
  for (let at = executable.indexOf(start); at !== -1; at = executable.indexOf(start, at + 1)) {
    const name = executable.subarray(at + FLAGS_AT, at + seeded.length);
    if (name.equals(seeded.subarray(FLAGS_AT))) places.push(at + FLAGS_AT);
  }
  const [place] = places;
  if (place === undefined || places.length > 1) {
    throw new Error(`Cannot find the compiled code in the executable: ${places.length} places look like it`);
  }
  random.copy(executable, place, FLAGS_AT);
}

/**
 * Compiles a bundle for a process without {@link FIXED_HASHES}. Equal bundles give equal bytes.
 *
 * @param file a function with the parameters of a CommonJS module, in ASCII
 * @param name the bundle's name in stack traces
 * @param functions names by `functionsOf`, which are compiled as well; the rest is compiled when it is first called
 * @param flags of Node and of the engine, which the program runs with
 */
export function compiledBundle(
  file: string,
  name: string,
  functions: readonly string[],
  flags: readonly string[],
): Buffer {
  const places =
    functions.length === 0 ? new Map<string, number>() : functionsOf(readFileSync(file, "latin1"));
  const ends = functions.flatMap((path) => places.get(path) ?? []).toSorted((a, b) => a - b);
  const building = [...flags, FIXED_HASHES, ONE_THREAD];
  const code = execFileSync(process.execPath, [...building, COMPILE_BUNDLE, file, name], {
    // Without a compile cache and options of the user: the process has the same in memory each time.
    env: {},
    input: JSON.stringify(ends),
    maxBuffer: MAX_CODE,
  });
  headerOf(process.execPath, flags).copy(code, FLAGS_AT, FLAGS_AT);
  return code;
}

/** Start of any compiled code of a Node under flags. */
function headerOf(node: string, flags: readonly string[]): Buffer {
  const script = `process.stdout.write(new (require("node:vm").Script)("1").createCachedData().subarray(0, ${FLAGS_AT + 4}))`;
  return execFileSync(node, [...flags, "-e", script]);
}

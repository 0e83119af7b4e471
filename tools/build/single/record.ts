/**
 * `npm run record:start`: writes the lists of functions that a command calls until it has done its first work. Releases compile these
 * ahead (0078). An old list is never wrong: what it misses is compiled when it is called.
 */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { git, startCodeHostProcess, startSvc, tempFolder } from "@devplat/testkit";
import { functionsOf } from "./functions.ts";
import { buildProgram } from "./program.ts";
import { BUNDLE } from "./program-bundle.ts";
import { startedFile } from "./started-functions.ts";

/** Scripts of a process as V8's coverage has them. A range of 0 is a function that was not called. */
interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly ranges: readonly [{ readonly endOffset: number; readonly count: number }];
    }[];
  }[];
}

const folder = await tempFolder("record-start");
try {
  const program = await buildProgram("svc", join(folder.path, "build"), "1.0.0");
  const coverage = join(folder.path, "coverage");
  await mkdir(coverage);
  await serveFirstHits(program, coverage);
  const text = await readFile(join(folder.path, "build", BUNDLE), "latin1");
  const called = await calledIn(coverage, text);
  await writeFile(startedFile("svc", "serve"), called.map((name) => `${name}\n`).join(""));
  process.stdout.write(`svc serve: ${called.length} functions\n`);
} finally {
  await folder.remove();
}

/** Fills a cache, and records a start over it until a clone and a fetch are served. */
async function serveFirstHits(program: string, coverage: string): Promise<void> {
  const codeHost = await startCodeHostProcess();
  try {
    await codeHost.addRepository("acme", "widgets");
    const dataDir = join(folder.path, "data");
    const options = { codeHost, program, dataDir, untilListening: true };
    const clone = async (url: string, name: string): Promise<void> =>
      void (await git(["clone", "-q", "--mirror", `${url}/acme/widgets.git`, join(folder.path, name)]));
    const filling = await startSvc(options);
    await filling.addCachedRepository("acme", "widgets");
    for (const name of ["one", "two", "three"]) await clone(filling.url, name);
    await filling.stop();
    const recorded = await startSvc({ ...options, env: { NODE_V8_COVERAGE: coverage } });
    await clone(recorded.url, "four");
    await git(["-C", join(folder.path, "four"), "fetch", "-q"]);
    await recorded.stop();
  } finally {
    await codeHost.stop();
  }
}

/** Names by `functionsOf` of the functions that were called, in their order. */
async function calledIn(coverageFolder: string, text: string): Promise<string[]> {
  const ends = new Set<number>();
  for (const file of await readdir(coverageFolder)) {
    const { result } = JSON.parse(await readFile(join(coverageFolder, file), "utf8")) as Coverage;
    for (const { url, functions } of result) {
      if (!url.endsWith(BUNDLE)) continue;
      for (const { ranges } of functions) if (ranges[0].count > 0) ends.add(ranges[0].endOffset);
    }
  }
  // Functions with one end are arrow functions in one another: the innermost stands for all.
  const byEnd = new Map([...functionsOf(text)].map(([name, end]) => [end, name]));
  return [...ends].flatMap((end) => byEnd.get(end) ?? []).toSorted();
}

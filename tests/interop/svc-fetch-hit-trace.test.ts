import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { relative, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { git } from "@devplat/testkit";
import { command, startStand, type Stand } from "./svc-git-stand.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/**
 * Files between the entrance of `git/` and the stored bytes: git, access, cache, and what these use of the engine. Among them
 * are the shared resolution of refs and the time of a client's wait.
 */
const MAX_FILES = 36;
/** All files of this repository, with the web server, metrics and small packages. */
const MAX_ALL_FILES = 59;
const ENGINE = /^(?:apps\/svc\/src\/(?:git|access|cache|upstream|code-host)|packages\/git-[a-z]+)\//;

interface Executed {
  readonly file: string;
  readonly name: string;
  readonly location: {
    readonly scriptId: string;
    readonly lineNumber: number;
    readonly columnNumber: number;
  };
}
interface Entry {
  readonly file: string;
  readonly name: string;
  /** The file that the function was called from. */
  readonly caller: string;
}

/** A file of this repository, or undefined for others and for tests. */
function ownFile(url: string): string | undefined {
  if (!url.startsWith("file:")) return undefined;
  const path = relative(ROOT, fileURLToPath(url));
  return /^(?:apps|packages)\//.test(path) && !path.includes("node_modules") ? path : undefined;
}

describe("a fetch hit", { timeout: 120_000 }, () => {
  let stand: Stand;
  let entries: readonly Entry[];
  before(async () => {
    stand = await startStand({ listed: ["r"] });
    const { path } = await stand.codeHost.addRepository("org", "r");
    const fetch = command("fetch", [`want ${await git(["-C", path, "rev-parse", "main"])}`, "done"]);
    const hit = async (): Promise<void> => {
      const { headers } = await stand.post("org/r", fetch);
      assert.equal(headers["x-svc-cache"], "hit");
    };
    await stand.post("org/r", command("ls-refs", ["ref-prefix HEAD"]));
    await stand.post("org/r", fetch);
    await stand.cache.settled();
    for (let time = 0; time < 3; time++) await hit();
    entries = await traced(hit);
  });
  after(() => stand.stop());

  it("runs in a limited number of files from git to the stored bytes", (t) => {
    const files = [...new Set(entries.map(({ file }) => file))];
    const engine = files.filter((file) => ENGINE.test(file));
    for (const file of files) t.diagnostic(`${ENGINE.test(file) ? "*" : " "} ${file}`);
    t.diagnostic(`${engine.length} of ${files.length} files, ${new Set(entries.map(keyOf)).size} functions`);
    assert.ok(engine.length <= MAX_FILES, `${engine.length} files`);
    assert.ok(files.length <= MAX_ALL_FILES, `${files.length} files`);
  });

  it("goes down only: cache never calls git, access calls neither", () => {
    const folderOf = (file: string): string => /^apps\/svc\/src\/([a-z-]+)\//.exec(file)?.[1] ?? "";
    const calls = entries.map(({ file, caller }) => `${folderOf(caller)} → ${folderOf(file)}`);
    assert.ok(
      calls.includes("git → cache") && calls.includes("git → access") && calls.includes("cache → access"),
    );
    for (const up of ["cache → git", "access → git", "access → cache"]) {
      assert.deepEqual(
        entries.filter((_, at) => calls[at] === up),
        [],
        up,
      );
    }
  });

  it("calls only the renewal of the authorization in access, from the cache", () => {
    const called = entries.filter(
      ({ file, caller }) => /src\/access\//.test(file) && /src\/cache\//.test(caller),
    );
    const names = new Set(called.map(({ name }) => name));
    // Getters only read an earlier decision.
    for (const read of ["get wantsShown", "get identity", "isStorable", "repositoryId"]) names.delete(read);
    assert.deepEqual([...names], ["renew"]);
  });
});

const keyOf = ({ file, name }: Entry): string => `${file} ${name}`;

/** Runs something and gives the functions of this repository that it entered, in their order. */
async function traced(run: () => Promise<void>): Promise<readonly Entry[]> {
  const session = new Session();
  session.connect();
  await session.post("Debugger.enable");
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await run();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  await session.post("Profiler.stopPreciseCoverage");
  const executed: Executed[] = [];
  for (const { scriptId, url, functions } of result) {
    const file = ownFile(url);
    if (file === undefined) continue;
    const starts = lineStarts(readFileSync(resolve(ROOT, file), "utf8"));
    for (const { functionName, ranges } of functions) {
      const [range] = ranges;
      if (range === undefined || range.count === 0) continue;
      const { locations } = await session.post("Debugger.getPossibleBreakpoints", {
        start: { scriptId, ...positionOf(starts, range.startOffset) },
        end: { scriptId, ...positionOf(starts, range.endOffset) },
        restrictToFunction: true,
      });
      const [first] = locations;
      if (first === undefined) continue;
      const { lineNumber, columnNumber = 0 } = first;
      executed.push({ file, name: functionName, location: { scriptId, lineNumber, columnNumber } });
    }
  }
  const entries: Entry[] = [];
  // A condition that is false never stops the program, and notes where it is.
  Object.assign(globalThis, {
    noteEntry: (index: number, stack: string): boolean => {
      const { file, name } = executed[index]!;
      // The first frame is the condition, the second the function itself.
      const frames = stack.split("\n").filter((line) => line.includes("file:") && !line.includes("eval"));
      const url = /file:[^)]*?(?=:\d+:\d+)/.exec(frames[1] ?? "")?.[0] ?? "";
      entries.push({ file, name, caller: ownFile(url) ?? "" });
      return false;
    },
  });
  for (const [index, { location }] of executed.entries()) {
    const condition = `noteEntry(${index}, new Error().stack)`;
    await session.post("Debugger.setBreakpoint", { location, condition });
  }
  await run();
  await session.post("Debugger.disable");
  session.disconnect();
  return entries;
}

function lineStarts(text: string): readonly number[] {
  return [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
}

function positionOf(starts: readonly number[], offset: number): { lineNumber: number; columnNumber: number } {
  const lineNumber = starts.findLastIndex((start) => start <= offset);
  return { lineNumber, columnNumber: offset - (starts[lineNumber] ?? 0) };
}

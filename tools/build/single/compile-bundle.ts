/**
 * Compiles a bundle ahead, with chosen functions (0078), and writes the code to standard output. A process of its own: compiled code names
 * the flags of the process that made it.
 *
 * `node FLAG… compile-bundle.ts FILE NAME`, with the offsets of the functions' ends on standard input, as JSON and in order. The process
 * does nothing else: what it has in memory would change the bytes.
 */
import { readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { basename } from "node:path";
import { setImmediate } from "node:timers/promises";
import { Script } from "node:vm";

/** A place as the inspector counts it: from 0. */
interface Location {
  readonly lineNumber: number;
  readonly columnNumber: number;
}

const [file = "", name = basename(file)] = process.argv.slice(2);
const text = readFileSync(file, "latin1");
const ends = JSON.parse(readFileSync(0, "utf8")) as readonly number[];
const session = new Session();
session.connect();
let scriptId = "";
session.on("Debugger.scriptParsed", ({ params }) => {
  if (params.url.endsWith(name)) ({ scriptId } = params);
});
await session.post("Debugger.enable");
const script = new Script(text, { filename: name });
// The inspector learns of a script when it first runs. Here it only makes the function around the program.
script.runInThisContext();
await setImmediate();
if (ends.length > 0) await compileFunctions();
await session.post("Debugger.disable");
session.disconnect();
process.stdout.write(script.createCachedData());

/** V8 compiles a function, and those around it, to tell where a breakpoint could be in it. */
async function compileFunctions(): Promise<void> {
  const locate = locator(text);
  for (const end of ends) {
    const start = { scriptId, ...locate(end - 1) };
    await session.post("Debugger.getPossibleBreakpoints", {
      start,
      end: { scriptId, ...locate(end) },
      restrictToFunction: true,
    });
  }
}

/** Line and column of an offset. Offsets must rise from call to call. */
function locator(of: string): (offset: number) => Location {
  let lineNumber = 0;
  let lineStart = 0;
  return (offset) => {
    for (let next = of.indexOf("\n", lineStart); next !== -1 && next < offset;) {
      lineNumber++;
      lineStart = next + 1;
      next = of.indexOf("\n", lineStart);
    }
    return { lineNumber, columnNumber: offset - lineStart };
  };
}

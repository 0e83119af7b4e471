/**
 * Loaded before the tests by `npm run test:platform`. The code of the repository then sees another operating system: the
 * properties of `process` and `node:os`, and for Windows the paths of `node:path` and of the file system. Node itself and the
 * packages of npm keep this one.
 */
import childProcess from "node:child_process";
import fs, { mkdtempSync, rmSync } from "node:fs";
import fsPromises from "node:fs/promises";
import { registerHooks } from "node:module";
import os from "node:os";
import path, { posix, win32 } from "node:path";
import sqlite from "node:sqlite";
import { pathToFileURL } from "node:url";
import { WindowsFiles } from "./windows-files.ts";

const STAND_IN = "stand-in:";
const ROOT = pathToFileURL(`${path.resolve(import.meta.dirname, "../../..")}/`).href;
const system = process.env["TEST_PLATFORM"];
if (system !== "win32" && system !== "darwin") throw new Error("TEST_PLATFORM is not set to win32 or darwin");

const standIns: Record<string, object> =
  system === "win32" ? windows() : { "node:os": { ...os, platform: () => system, type: () => "Darwin" } };
Object.defineProperty(process, "platform", { value: system });
(globalThis as Record<symbol, unknown>)[Symbol.for(STAND_IN)] = standIns;

registerHooks({
  resolve(specifier, context, next) {
    const { parentURL = "" } = context;
    const isOurs = parentURL.startsWith(ROOT) && !parentURL.includes("/node_modules/");
    if (!isOurs || !(specifier in standIns) || parentURL.startsWith(import.meta.url.replace(/[^/]*$/, "")))
      return next(specifier, context);
    return { url: STAND_IN + specifier, format: "module", shortCircuit: true };
  },
  load(url, context, next) {
    if (!url.startsWith(STAND_IN)) return next(url, context);
    const name = url.slice(STAND_IN.length);
    const names = Object.keys(standIns[name] ?? {}).filter((each) => each !== "default");
    const source = [
      `const it = globalThis[Symbol.for("${STAND_IN}")]["${name}"];`,
      "export default it;",
      ...names.map((each) => `export const ${each} = it.${each};`),
    ].join("\n");
    return { format: "module", source, shortCircuit: true };
  },
});

function windows(): Record<string, object> {
  const drive = mkdtempSync(path.join(os.tmpdir(), "drive-c-"));
  process.once("exit", () => rmSync(drive, { recursive: true, force: true }));
  const files = new WindowsFiles(drive);
  const home = files.makeFolder("Users", "ada");
  const temporary = files.makeFolder("Users", "ada", "AppData", "Local", "Temp");
  const ofWindows = { ...os, EOL: "\r\n", platform: () => "win32", type: () => "Windows_NT" };
  return {
    "node:path": { ...win32, posix, win32 },
    "node:os": { ...ofWindows, homedir: () => home, tmpdir: () => temporary },
    "node:fs": files.wrap(fs),
    "node:fs/promises": files.wrap(fsPromises),
    "node:child_process": files.wrapPrograms(childProcess),
    "node:sqlite": { ...sqlite, DatabaseSync: files.wrapDatabase(sqlite.DatabaseSync) },
  };
}

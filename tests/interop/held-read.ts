/*
 * Loaded before a program (`--import`): reading the file HELD_FILE waits until HELD_FILE + ".go" is there. Before that it makes
 * HELD_FILE + ".begun".
 */
import { existsSync, writeFileSync } from "node:fs";
import files from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const held = process.env["HELD_FILE"] ?? "";
const { readFile } = files;
files.readFile = (async (path: string, ...rest: [never]) => {
  if (path === held) {
    writeFileSync(`${held}.begun`, "");
    while (!existsSync(`${held}.go`)) await sleep(20);
  }
  return await readFile(path, ...rest);
}) as typeof readFile;
syncBuiltinESMExports();

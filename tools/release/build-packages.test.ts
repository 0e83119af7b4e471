import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { it } from "node:test";
import { promisify } from "node:util";

const PROGRAM = join(import.meta.dirname, "build-packages.ts");

const runWith = async (argument: string) =>
  await promisify(execFile)(process.execPath, ["--disable-warning=ExperimentalWarning", PROGRAM, argument]);

it("build:packages shows its help, and builds nothing with other arguments", async () => {
  assert.match((await runWith("--help")).stdout, /^Usage: npm run build:packages\n/);
  await assert.rejects(runWith("--out"), {
    code: 2,
    stderr: 'build:packages takes no arguments, and was given "--out". See --help.\n',
  });
});

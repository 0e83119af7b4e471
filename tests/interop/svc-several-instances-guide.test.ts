import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, tempFolder, until, type TempFolder } from "@devplat/testkit";

const ROOT = resolve(import.meta.dirname, "../..");
const GUIDE = join(ROOT, "docs/svc/several-instances.md");
/** Milliseconds for the whole walk-through on a busy machine. */
const LIMIT_MS = 240_000;

describe("guide to several instances", () => {
  let folder: TempFolder;
  let script: ChildProcess;
  let output = "";
  before(async () => {
    folder = await tempFolder("several-instances");
    script = spawn("npm", ["run", "start:instances"], {
      cwd: ROOT,
      env: { ...process.env, START_DATA_DIR: folder.path },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    for (const stream of [script.stdout, script.stderr]) {
      stream?.on("data", (bytes: Buffer) => (output += bytes.toString()));
    }
    await until(
      () => /Ctrl-C stops everything/.test(output) || script.exitCode !== null,
      () => output,
    );
    assert.equal(script.exitCode, null, output);
  });
  after(async () => {
    const ended = once(script, "close");
    process.kill(-(script.pid ?? 0), "SIGINT");
    await ended;
    await folder.remove();
  });

  it("its walk-through passes as it is written", async () => {
    const lines = (await walkThrough()).replaceAll("data/instances", folder.path);
    assert.match(lines, /kill -9/);
    const { code, stdout, stderr } = await run("sh", ["-ec", lines], {
      cwd: ROOT,
      timeoutMs: LIMIT_MS,
      env: { PATH: process.env["PATH"], HOME: folder.path, TMPDIR: folder.path },
    });
    assert.equal(code, 0, stdout + stderr + output);
    assert.match(stdout, /^svc_cache_fetch_total\{result="hit"\} 1$/m);
    assert.match(stdout, /ready/, "the list of instances");
  });
});

/** The indented lines of the section "Try it", without the first block, which starts the instances. */
async function walkThrough(): Promise<string> {
  const section = /## Try it\n([^]*?)\n## /.exec(await readFile(GUIDE, "utf8"))?.[1] ?? "";
  const lines = section.split("\n").filter((line) => line.startsWith("    "));
  assert.equal(lines[0], "    npm run start:instances");
  return lines.slice(1).join("\n");
}

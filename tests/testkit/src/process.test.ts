import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { loopSeconds, testSeed } from "./effort.ts";
import { gitEnvironment } from "./git-environment.ts";
import { git, run } from "./process.ts";

/** Calls with an environment variable set, and puts it back. */
function withVariable<Result>(name: string, value: string | undefined, call: () => Result): Result {
  const earlier = process.env[name];
  const set = (to: string | undefined): void => {
    if (to === undefined) delete process.env[name];
    else process.env[name] = to;
  };
  set(value);
  try {
    return call();
  } finally {
    set(earlier);
  }
}

describe("run", () => {
  it("gives exit code, both outputs and bytes, and hands over its input", async () => {
    const done = await run("sh", ["-c", "cat; printf '\\377' ; echo bad >&2; exit 3"], { input: "in " });
    assert.deepEqual([done.code, done.stderr], [3, "bad\n"]);
    assert.deepEqual(done.stdoutBytes, Buffer.from([0x69, 0x6e, 0x20, 0xff]));
  });

  it("reports the code of a command that ignores its input, or ends by a signal", async () => {
    assert.equal((await run("true", [], { input: "x".repeat(1_000_000) })).code, 0);
    assert.equal((await run("sh", ["-c", "kill -TERM $$"])).code, 143);
  });

  it("kills the command and its children when the time is up", async () => {
    const done = await run("sh", ["-c", "sleep 60 & echo $!; wait"], { timeoutMs: 200 });
    assert.equal(done.code, 137);
    // Gone, or dead and not yet reaped by the system's init.
    assert.match((await run("ps", ["-o", "stat=", "-p", done.stdout.trim()])).stdout, /^(Z.*\n)?$/);
  });

  it("rejects a program that is not there", async () => {
    await assert.rejects(run("no-such-program", []), { code: "ENOENT" });
  });
});

describe("tempFolder", () => {
  it("that nobody removed goes when the process exits", async () => {
    const module = new URL("./temp-folder.ts", import.meta.url).href;
    const script = `
      const { tempFolder } = await import(${JSON.stringify(module)});
      process.stdout.write((await tempFolder()).path);
      process.exitCode = 5;
    `;
    const done = await run(process.execPath, ["--input-type=module", "-e", script]);
    assert.equal(done.code, 5, done.stderr);
    assert.match(done.stdout, /devplat-test-/);
    assert.equal(existsSync(done.stdout), false);
  });
});

describe("git", () => {
  it("throws with git's own words when it fails", async () => {
    await assert.rejects(git(["-C", "/", "rev-parse", "HEAD"]), { code: "command_failed" });
  });

  it("takes nothing of the caller's environment or configuration", () => {
    const env = withVariable("GIT_DIR", "/elsewhere", () => gitEnvironment({ GIT_TRACE: "1" }));
    assert.equal(env["GIT_DIR"], undefined);
    assert.equal(env["GIT_TRACE"], "1");
    assert.equal(env["GIT_CONFIG_NOSYSTEM"], "1");
  });
});

describe("effort", () => {
  it("loopSeconds is a share of TEST_BUDGET_SECONDS, 900 by default", () => {
    withVariable("TEST_BUDGET_SECONDS", undefined, () => assert.equal(loopSeconds(0.1), 30));
    withVariable("TEST_BUDGET_SECONDS", "10", () => assert.equal(loopSeconds(0.5), 5));
    withVariable("TEST_BUDGET_SECONDS", "soon", () =>
      assert.throws(() => loopSeconds(0.5), { code: "bad_setting" }),
    );
    assert.throws(() => loopSeconds(2), RangeError);
  });

  it("testSeed stays the same within a process", () => {
    const seed = testSeed();
    assert.ok(Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31);
    assert.equal(testSeed(), seed);
  });
});

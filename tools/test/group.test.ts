import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { tempFolder, type TempFolder } from "@devplat/testkit";
import { groupFiles, quickFiles, testFiles } from "./files.ts";
import { runGroup, type GroupResult } from "./group.ts";

const HEAD = `import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
`;

describe("runGroup", () => {
  let folder: TempFolder;
  before(async () => {
    folder = await tempFolder("group");
  });
  after(() => folder.remove());

  /** Runs files with the given texts as one group, and captures their output. */
  async function outcome(
    texts: readonly string[],
    isolated = false,
    limitMs?: number,
  ): Promise<Omit<GroupResult, "seconds" | "fileSeconds" | "failedFiles">> {
    const files = await Promise.all(
      texts.map(async (text, at) => {
        const path = join(folder.path, `${isolated}-${at}.test.ts`);
        await writeFile(path, HEAD + text);
        return path;
      }),
    );
    const { seconds, fileSeconds, failedFiles, ...rest } = await runGroup(
      folder.path,
      { name: "group", files, isolated },
      { concurrency: 1, quiet: true, ...(limitMs === undefined ? {} : { limitMs }) },
    );
    assert.ok(seconds > 0);
    assert.equal(failedFiles.length > 0, rest.failed > 0 && rest.broken === undefined, failedFiles.join());
    // Also of a group that hangs: its first test has ended.
    if (rest.passed > 0 || rest.broken?.includes("never ends") === true) {
      const known = Object.keys(fileSeconds);
      assert.ok(known.length > 0 && known.every((file) => files.includes(file)), known.join());
    }
    return rest;
  }

  it("names the tests of a group that hangs", async () => {
    const hang = `it("ends", () => {}); it("never ends", async () => { await new Promise((ok) => setTimeout(ok, 60_000)); });`;
    // The limit has to be over after the test's begin, and a start takes its time on a loaded machine.
    let broken: string | undefined;
    for (let limitS = 3; limitS < 60; limitS *= 3) {
      ({ broken } = await outcome([hang], false, limitS * 1000));
      assert.match(broken ?? "", new RegExp(`^not done after ${limitS} s; begun and not ended:`));
      if (broken?.includes("never ends") === true) break;
    }
    assert.match(broken ?? "", /:\n\S+:3 never ends$/);
  });

  it("a file in its own process ends with its tests, even if a test leaves work", async () => {
    const left = `it("leaves", () => { setInterval(() => {}, 1000); assert.fail(); }); it("passes", () => {});`;
    assert.deepEqual(await outcome([left, `it("other", () => {});`], true), {
      passed: 2,
      failed: 1,
      skipped: 0,
      broken: undefined,
    });
  });

  for (const isolated of [false, true]) {
    const way = isolated ? "isolated" : "in one process";
    it(`counts tests and not suites or files, ${way}`, async () => {
      const first = `describe("s", () => { it("a", () => {}); it("b", () => {}); });`;
      assert.deepEqual(await outcome([first, `it("c", () => {});`], isolated), {
        passed: 3,
        failed: 0,
        skipped: 0,
        broken: undefined,
      });
    });

    it(`counts a failing test once, and a failing hook at least once, ${way}`, async () => {
      const failing = `describe("s", () => { it("a", () => assert.equal(1, 2)); it("b", () => {}); });`;
      const one = await outcome([failing], isolated);
      assert.deepEqual([one.passed, one.failed, one.broken], [1, 1, undefined]);
      const hook = `describe("s", () => { before(() => { throw new Error("hook"); }); it("a", () => {}); });`;
      const two = await outcome([hook], isolated);
      assert.equal(two.passed, 0);
      assert.ok(two.failed >= 1);
    });

    it(`is broken by a skipped test, by no test at all, and by a crash, ${way}`, async () => {
      assert.match(
        (await outcome([`it("a", { "skip": true }, () => {});`], isolated)).broken ?? "",
        /skipped/,
      );
      assert.equal((await outcome([""], isolated)).broken, "holds no test");
      const crash = await outcome([`it("a", () => process.kill(process.pid, "SIGKILL"));`], isolated);
      assert.ok(crash.failed > 0 || crash.broken !== undefined);
      const early = await outcome([`it("a", () => process.exit(0));`], isolated);
      assert.ok(early.failed > 0 || early.broken !== undefined, JSON.stringify(early));
    });
  }
});

describe("test files", () => {
  it("are found by suffix and part of the path, and grouped by workspace", () => {
    const root = join(import.meta.dirname, "../..");
    const all = testFiles(root, ".test.ts", []);
    assert.ok(all.includes("tools/test/group.test.ts"));
    assert.ok(all.every((file) => !file.includes("node_modules")));
    assert.deepEqual(testFiles(root, ".test.ts", ["tools/test/gr"]), ["tools/test/group.test.ts"]);
    assert.deepEqual(testFiles(root, ".test.ts", ["no such"]), []);
    const quick = quickFiles(root, all);
    assert.ok(
      quick.includes("tools/test/group.test.ts") &&
        !quick.some((file) => file.includes(".long.")) &&
        quick.length > 100,
    );
    for (const file of [
      "packages/secret-store/src/vault/vault-store.test.ts",
      "apps/agent/src/sync/content/yaml-readers.test.ts",
      "tests/interop/agent-cli.test.ts",
    ]) {
      assert.ok(all.includes(file) && !quick.includes(file), file);
    }
    assert.deepEqual(
      groupFiles(["apps/svc/src/a.test.ts", "apps/svc/b.test.ts", "tests/interop/c.test.ts"]),
      [
        { name: "apps/svc", files: ["apps/svc/src/a.test.ts", "apps/svc/b.test.ts"], isolated: false },
        { name: "tests/interop", files: ["tests/interop/c.test.ts"], isolated: true },
      ],
    );
  });
});

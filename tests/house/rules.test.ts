import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { tempFolder } from "@devplat/testkit";
import { readCoverage } from "../../tools/spec/rules.ts";
import { ROOT } from "./sources.ts";

describe("docs/rules", () => {
  it("each rule has a test that names it, and each number in a title is a rule's", () => {
    const { rules, unknown, double } = readCoverage(ROOT);
    for (const [program, least] of [
      ["agent", 400],
      ["svc", 150],
    ] as const) {
      assert.ok(rules.filter(({ id }) => id.startsWith(`${program} `)).length > least, program);
    }
    assert.deepEqual(
      rules.filter(({ tests }) => tests.length === 0).map(({ id }) => id),
      [],
    );
    assert.deepEqual([unknown, double], [[], []]);
  });

  it("a rule without a test, an unknown number and a number given twice are found", async () => {
    const folder = await tempFolder("rules");
    try {
      await mkdir(join(folder.path, "docs/rules"), { recursive: true });
      await mkdir(join(folder.path, "tests"));
      await writeFile(
        join(folder.path, "docs/rules/p.md"),
        "- **1.1** one\n- **1.2** two\n- **1.2** again\n",
      );
      const test = ["it", `("held [p 1.1 3.4]", () => {});`].join("");
      await writeFile(join(folder.path, "tests/a.test.ts"), test);
      const { rules, unknown, double } = readCoverage(folder.path);
      assert.deepEqual(
        rules.map(({ id, tests }) => [id, tests]),
        [
          ["p 1.1", ["tests/a.test.ts: held"]],
          ["p 1.2", []],
          ["p 1.2", []],
        ],
      );
      assert.deepEqual([unknown, double], [["tests/a.test.ts: held: p 3.4"], ["p 1.2"]]);
    } finally {
      await folder.remove();
    }
  });
});

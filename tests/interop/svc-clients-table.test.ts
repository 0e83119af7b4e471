import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, it } from "node:test";
import { CHECK_OUT_CASES } from "./clients/check-out-cases.ts";
import { EVERYDAY_CASES } from "./clients/everyday-cases.ts";
import { PROGRAM_CASES } from "./clients/program-cases.ts";
import { tableOf, titleOf, type Row } from "./clients/table.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

const rowsOf = (cases: readonly { readonly row: Row }[]): Row[] => cases.map(({ row }) => row);

describe("docs/interop.md", () => {
  const text = read("docs/interop.md");

  for (const [title, cases] of [
    ["check-outs", CHECK_OUT_CASES],
    ["stock git", EVERYDAY_CASES],
    ["other clients", PROGRAM_CASES],
  ] as const) {
    it(`holds a row for every test of ${title}, and the test's outcome`, () => {
      const table = tableOf(rowsOf(cases));
      assert.ok(text.includes(`\n${table}\n`), `the table has to be:\n${table}`);
    });
  }

  it("holds no other row, and no test twice", () => {
    const rows = rowsOf([...CHECK_OUT_CASES, ...EVERYDAY_CASES, ...PROGRAM_CASES]);
    const clients = new Set(rows.map(({ client }) => client));
    const held = text.split("\n").filter((line) => clients.has(line.split(" | ")[0]?.slice(2) ?? ""));
    assert.equal(held.length, rows.length);
    assert.equal(new Set(rows.map(titleOf)).size, rows.length);
  });

  it("names the versions that are pinned", () => {
    const { devDependencies } = JSON.parse(read("package.json")) as {
      devDependencies: Record<string, string>;
    };
    const pins = [
      ["isomorphic-git", devDependencies["isomorphic-git"]],
      ["dulwich", /^dulwich==(\S+)/m.exec(read("tools/clients/python/requirements.txt"))?.[1]],
      ["pygit2", /^pygit2==(\S+)/m.exec(read("tools/clients/python/requirements.txt"))?.[1]],
      ["go-git", /go-git\/v5 v(\S+)/.exec(read("tools/clients/go-git/go.mod"))?.[1]],
      ["JGit", /<version>([\d.]+-r)<\/version>/.exec(read("tools/clients/jgit/pom.xml"))?.[1]],
    ];
    for (const [name, version] of pins)
      assert.ok(text.includes(`- **${name}** ${version}`), `${name} ${version}`);
  });
});

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { CommandTable } from "./command.ts";
import { manPage } from "./man-page.ts";

const PARTS = {
  version: "1.2.3",
  date: "2026-01-02",
  files: [["~/.config/prog.yaml", "The configuration."]],
  seeAlso: ["git(1)"],
} as const;
const TABLE: CommandTable = {
  name: "prog",
  description: "Is for tests.",
  commands: [
    {
      name: "thing add",
      usage: "NAME… -- COMMAND",
      summary: "Add a thing's name.",
      options: {
        size: { type: "count", value: "<n>", description: "How big.", word: "none" },
        tag: { type: "string", value: "<text>", description: "A tag.", repeatable: true, required: true },
        kind: { type: "string", value: "<kind>", description: "Its kind.", choices: ["a", "b"], short: "k" },
      },
    },
    { name: "version", summary: "Print the version." },
  ],
  globalOptions: { config: { type: "string", value: "<path>", description: "The configuration." } },
  notes: ".dots and 'quotes' and \\backslashes\nExit codes: 0 done.",
};

/** Characters with a meaning in roff, and others. */
const CHARACTERS = [
  "a",
  "b",
  ".",
  "'",
  "`",
  "^",
  "~",
  "-",
  "\\",
  '"',
  "…",
  "é",
  "%",
  "f",
  "B",
  "*",
  "[",
  "(",
  "n",
];

/** Output of groff for a terminal without formatting, and what it complained about. */
function rendered(source: string): { shown: string; complaints: string } {
  const { stdout, stderr, error } = spawnSync("groff", ["-man", "-Tutf8", "-P-cbou", "-ww", "-rLL=200n"], {
    input: source,
    encoding: "utf8",
  });
  assert.equal(error, undefined);
  return { shown: stdout, complaints: stderr };
}

describe("manPage", () => {
  it("has commands, options and files, and groff shows them without a warning", () => {
    const { shown, complaints } = rendered(manPage(TABLE, PARTS));
    assert.equal(complaints, "");
    for (const part of [
      /^NAME\n\s+prog - Is for tests$/m,
      /prog thing add NAME… -- COMMAND/,
      /Add a thing's name\./,
      /--size <n>\s+How big\. Or: none\./,
      /--tag <text>\s+A tag\. Repeatable\. Required\./,
      /-k, --kind <kind>\s+Its kind\. One of: a, b\./,
      /^OPTIONS OF EVERY COMMAND\n\s+--config <path>/m,
      /-h, --help\s+Show help\./,
      /^\s+\.dots and 'quotes' and \\backslashes$/m,
      /~\/\.config\/prog\.yaml\s+The configuration\./,
      /^SEE ALSO\n\s+git\(1\)$/m,
      /prog 1\.2\.3 +2026-01-02/,
    ])
      assert.match(shown, part);
  });

  it("says for which commands the common options do not count", () => {
    const as = { name: "as given", summary: "Pass on.", argumentsAsGiven: true };
    const { shown, complaints } = rendered(manPage({ ...TABLE, commands: [...TABLE.commands, as] }, PARTS));
    assert.equal(complaints, "");
    assert.match(shown, /^OPTIONS OF EVERY COMMAND\n\s+Only --help counts for: prog as given\./m);
    assert.doesNotMatch(rendered(manPage(TABLE, PARTS)).shown, /counts for/);
  });

  it("shows any text of a summary as it is", () => {
    const word = fc.string({
      unit: fc.constantFrom(...CHARACTERS),
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 5 }), (words) => {
        const summary = words.join(" ");
        const { shown, complaints } = rendered(
          manPage({ ...TABLE, notes: summary, commands: [] }, { ...PARTS, files: [], seeAlso: [] }),
        );
        assert.equal(complaints, "");
        assert.ok(
          shown.split("\n").some((line) => line.trim() === summary.trim()),
          `${summary}\n${shown}`,
        );
      }),
      { numRuns: 25 },
    );
  });
});

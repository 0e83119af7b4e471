import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  completionCommand,
  countOf,
  flagOf,
  parseCommandLine,
  textOf,
  textsOf,
  UsageError,
} from "./index.ts";
import type { CommandSpec, OptionSpecs, Program } from "./index.ts";
import { completionScript } from "./completion.ts";
import { helpText } from "./help.ts";

const nothing = async (): Promise<never> => Promise.reject(new Error("not to be loaded"));
const spec = (name: string, options: OptionSpecs = {}, max = 0, min = 0): CommandSpec<object> => ({
  name,
  usage: "THING",
  summary: `Does ${name}.`,
  options,
  arguments: { min, max },
  load: nothing,
});
const text = (description: string) => ({ type: "string", value: "<text>", description }) as const;

const PROGRAM: Program<object> = {
  name: "prog",
  description: "Is for tests.",
  commands: [
    spec("migrate"),
    spec("migrate status"),
    spec(
      "thing add",
      {
        size: { type: "count", value: "<n>", description: "How big.", word: "none" },
        on: { type: "boolean", description: "On.", excludes: "off" },
        off: { type: "boolean", description: "Off." },
        tag: { ...text("A tag."), repeatable: true },
        key: { ...text("The key."), required: true },
      },
      1,
      1,
    ),
    completionCommand(() => PROGRAM),
  ],
  globalOptions: { config: { ...text("A file."), short: "c" } },
  flags: () => ({}),
  notes: "Notes stand at the end.",
  debug: { isOn: () => false, hint: "" },
};

const called = (...args: string[]) => {
  const parsed = parseCommandLine(PROGRAM, args, {});
  assert.ok(parsed.kind === "command");
  return { name: parsed.command.name, ...parsed.invocation };
};

describe("parseCommandLine", () => {
  it("reads every type of option, in both forms, before and behind the arguments", () => {
    const { options, positionals } = called(
      "-c",
      "f.yaml",
      "thing",
      "add",
      "--tag=a",
      "x",
      "--tag",
      "b",
      "--size",
      "12",
      "--key=k",
      "--on",
    );
    assert.deepEqual(positionals, ["x"]);
    assert.equal(textOf(options, "config"), "f.yaml");
    assert.deepEqual(textsOf(options, "tag"), ["a", "b"]);
    assert.equal(countOf(options, "size"), 12);
    assert.deepEqual([flagOf(options, "on"), flagOf(options, "off")], [true, false]);
    assert.equal(countOf(called("thing", "add", "x", "--key=k", "--size=none").options, "size"), "none");
  });

  it("a command may have others below it", () => {
    assert.equal(called("migrate").name, "migrate");
    assert.equal(called("migrate", "status").name, "migrate status");
    assert.throws(() => called("migrate", "statsu"), {
      message: "unknown command below 'migrate': statsu; did you mean 'status'?",
    });
  });

  const refused: [string, string[], string][] = [
    ["a missing option", ["thing", "add", "x"], "'thing add' needs: --key <text>"],
    ["a missing argument", ["thing", "add", "--key=k"], "'thing add' needs: THING"],
    [
      "options that exclude each other",
      ["thing", "add", "x", "--key=k", "--on", "--off"],
      "--on and --off exclude each other",
    ],
    ["a negative number", ["thing", "add", "x", "--size=-1"], "--size takes a whole number, or 'none'"],
    ["a fraction", ["thing", "add", "x", "--size=1.5"], "--size takes a whole number, or 'none'"],
    [
      "a number out of range",
      ["thing", "add", "x", `--size=1${"0".repeat(15)}`],
      "--size takes a whole number, or 'none'",
    ],
    ["an option of another command", ["migrate", "--size=1"], "--size is an option of 'prog thing add' only"],
    ["an unknown letter", ["migrate", "-x"], "unknown option of 'prog migrate': -x"],
  ];
  for (const [name, args, message] of refused) {
    it(`refuses ${name}`, () => assert.throws(() => called(...args), { name: "Error", message }));
  }

  it("ends in a call, in help or in a UsageError that repeats no long argument, whatever is given", () => {
    const word = fc.oneof(
      fc.constantFrom("thing", "add", "migrate", "status", "--key", "--size", "-c", "--", "help", "--help"),
      fc.string({ minLength: 33 }),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 8 }), (args) => {
        try {
          parseCommandLine(PROGRAM, args, {});
        } catch (error) {
          assert.ok(error instanceof UsageError);
          for (const arg of args.filter((each) => each.length > 32)) assert.ok(!error.message.includes(arg));
        }
      }),
    );
  });
});

describe("helpText", () => {
  it("of the program, a group and a command", () => {
    assert.match(
      helpText(PROGRAM, undefined),
      /^Usage: prog .*thing add +Does thing add\..*Notes stand at the end\.\n$/s,
    );
    const group = helpText(PROGRAM, undefined, "migrate");
    assert.match(group, /^ {2}migrate +Does migrate\.\n {2}migrate status +/m);
    assert.doesNotMatch(group, /thing|Notes/);
    const command = helpText(PROGRAM, PROGRAM.commands[2]);
    assert.match(command, /^Usage: prog thing add THING\n/);
    assert.match(command, /--size <n> +How big\. Or: none\.$/m);
    assert.match(command, /--tag <text> +A tag\. Repeatable\.$/m);
    assert.match(command, /--key <text> +The key\. Required\.$/m);
    assert.match(command, /-c, --config <text> +A file\.$/m);
  });
});

describe("completionScript", () => {
  it("bash offers the next word, and the options of a command", () => {
    const folder = mkdtempSync(join(tmpdir(), "cli-"));
    try {
      const file = join(folder, "completion.bash");
      writeFileSync(file, completionScript(PROGRAM, "bash"));
      const offered = (...words: string[]): string[] => {
        const line = ["prog", ...words].map((word) => JSON.stringify(word)).join(" ");
        const script = `source ${file}; COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _prog; printf '%s\\n' "\${COMPREPLY[@]}"`;
        return spawnSync("bash", ["-c", script], { encoding: "utf8" }).stdout.trim().split("\n").toSorted();
      };
      assert.deepEqual(offered("t"), ["thing"]);
      assert.deepEqual(offered("thing", ""), ["add"]);
      assert.deepEqual(offered("thing", "add", "--s"), ["--size"]);
      assert.deepEqual(offered("migrate", "s"), ["status"]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

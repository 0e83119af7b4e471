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
import { Findings } from "./findings.ts";
import { completionScript } from "./completion.ts";
import { helpText } from "./help.ts";
import { reportFailure } from "./report.ts";

const nothing = async (): Promise<never> => Promise.reject(new Error("not to be loaded"));
const spec = (name: string, options: OptionSpecs = {}, max = 0, min = 0): CommandSpec<object> => ({
  name,
  usage: Array.from({ length: max }, (_, index) => (index < min ? "THING" : "[THING]")).join(" "),
  summary: `Does ${name}.`,
  options,
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
    spec(
      "pair",
      {
        key: text("A key."),
        q: { type: "boolean", description: "Has no short form." },
        n: { type: "count", description: "A number." },
      },
      2,
    ),
    { name: "version", summary: "Prints the version.", load: nothing },
    completionCommand(() => PROGRAM),
  ],
  globalOptions: {
    level: { ...text("A level."), choices: ["low", "high"] },
    config: { ...text("A file."), short: "c" },
    json: { type: "boolean", description: "JSON.", short: "j" },
  },
  notBuilt: { later: "for a time to come" },
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
  it("reads every type of option, in both forms, before and after the arguments", () => {
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

  it("a command may have subcommands", () => {
    assert.equal(called("migrate").name, "migrate");
    assert.equal(called("migrate", "status").name, "migrate status");
    assert.throws(() => called("migrate", "statsu"), {
      message: "unknown command below 'migrate': statsu; did you mean 'status'?",
    });
  });

  it("global options may be before the command, and their values are not commands", () => {
    for (const args of [
      ["-c", "thing", "migrate"],
      ["--config", "thing", "migrate"],
      ["--config=thing", "migrate"],
      ["migrate", "-c", "thing"],
    ]) {
      const { name, options } = called(...args);
      assert.deepEqual([name, options], ["migrate", { config: "thing" }]);
    }
    for (const flag of ["--json", "-j"])
      assert.deepEqual(called(flag, "migrate", "status").options, { json: true });
  });

  it("words after -- are arguments, and so is a single -", () => {
    assert.deepEqual(called("pair", "-", "--", "--key").positionals, ["-", "--key"]);
    assert.deepEqual(called("thing", "add", "x", "--key=k").positionals, ["x"]);
  });

  it("a command that takes its arguments as given gets all of them, and has a help", () => {
    const command: CommandSpec<object> = { ...spec("as-given"), argumentsAsGiven: true };
    const program = { ...PROGRAM, commands: [...PROGRAM.commands, command] };
    const args = ["-x", "--unknown=1", "a", "--", "--help"];
    const parsed = parseCommandLine(program, ["as-given", ...args], {});
    assert.ok(parsed.kind === "command");
    assert.deepEqual([parsed.invocation.positionals, parsed.invocation.options], [args, {}]);
    for (const help of ["--help", "-h"]) {
      assert.equal(parseCommandLine(program, ["as-given", help], {}).kind, "help");
    }
    assert.doesNotMatch(helpText(program, command), /Options of every command/);
  });

  it("an option that excludes another one may be given alone", () => {
    assert.deepEqual(called("thing", "add", "x", "--key=k", "--on").options, { key: "k", on: true });
    assert.deepEqual(called("thing", "add", "x", "--key=k", "--off").options, { key: "k", off: true });
  });

  it("--version alone is the command version", () => {
    assert.equal(called("--version").name, "version");
  });

  const helps: [string, string[], string | undefined, string | undefined][] = [
    ["no word", [], undefined, undefined],
    ["--help", ["--help"], undefined, undefined],
    ["help", ["help"], undefined, undefined],
    ["a group", ["thing"], undefined, "thing"],
    ["help of a group", ["help", "thing"], undefined, "thing"],
    ["a command with --help", ["thing", "add", "--help"], "thing add", undefined],
    ["--help before a command", ["--help", "migrate"], "migrate", undefined],
    ["-h, with an argument too many", ["migrate", "-h", "x"], "migrate", undefined],
    ["help of a command", ["help", "thing", "add"], "thing add", undefined],
    ["help behind an option", ["--json", "help", "migrate"], "migrate", undefined],
  ];
  for (const [name, args, command, group] of helps) {
    it(`gives help: ${name}`, () => {
      const parsed = parseCommandLine(PROGRAM, args, {});
      assert.ok(parsed.kind === "help");
      assert.deepEqual([parsed.command?.name, parsed.group], [command, group]);
    });
  }

  const refused: [string, string[], string, string?][] = [
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
    [
      "an option of others",
      ["migrate", "--key=k"],
      "--key is an option of 'prog thing add', 'prog pair' only",
    ],
    ["any argument", ["version", "x"], "'version' takes no arguments", "version"],
    ["a second argument", ["thing", "add", "x", "y"], "'thing add' takes at most 1 argument", "thing add"],
    ["a third argument", ["pair", "x", "y", "z"], "'pair' takes at most 2 arguments", "pair"],
    ["an unknown command", ["thinng"], "unknown command: thinng; did you mean 'thing'?"],
    ["a command like none", ["zzzzzzzz"], "unknown command: zzzzzzzz"],
    ["a word that looks like a value", ["hunter2"], "unknown command"],
    [
      "an unknown command of a group",
      ["thing", "ad"],
      "unknown command below 'thing': ad; did you mean 'add'?",
      "thing",
    ],
    ["a command of another group", ["thing", "status"], "unknown command below 'thing': status", "thing"],
    ["a command after --", ["--", "zzzzzzzz"], "no command before '--'"],
    ["a command after -- that exists", ["--", "pair"], "no command before '--'"],
    [
      "an unknown option before the command",
      ["--confg", "x", "migrate"],
      "unknown option: --confg; did you mean '--config'?",
    ],
    [
      "what stands behind -- below a group, options before it apart",
      ["-c", "x", "migrate", "--", "y"],
      "unknown command below 'migrate': y",
    ],
    ["a single - before a command", ["-", "pair"], "unknown command"],
    ["the second word of a command alone", ["statsu"], "unknown command: statsu"],
    ["help below a group", ["thing", "help"], "unknown command below 'thing': help"],
    ["--version beside a command", ["--version", "migrate"], "unknown option of 'prog migrate': --version"],
    ["--version beside an option", ["--version", "--json"], "unknown option: --version"],
    ["no number where no word is one either", ["pair", "--n=x"], "--n takes a whole number"],
    ["a word of a later version", ["later"], "'later' is not built yet in this version: for a time to come"],
    ["such a word below a group", ["thing", "later"], "unknown command below 'thing': later", "thing"],
    ["an option without its value", ["migrate", "-c"], "--config needs a value", "migrate"],
    ["an empty value", ["migrate", "--config="], "--config needs a value", "migrate"],
    ["a value of a flag", ["migrate", "--json=1"], "--json takes no value", "migrate"],
    [
      "the first letter of an option that has no short form",
      ["pair", "-q"],
      "unknown option of 'prog pair': -q",
    ],
    [
      "a mistyped option",
      ["migrate", "--confg=x"],
      "unknown option of 'prog migrate': --confg; did you mean '--config'?",
    ],
    [
      "a mistyped option of the command",
      ["pair", "--ky=x"],
      "unknown option of 'prog pair': --ky; did you mean '--key'?",
    ],
    [
      "an unknown option without a command",
      ["--confg"],
      "unknown option: --confg; did you mean '--config'?",
      "",
    ],
    [
      "an unknown option that looks like a value",
      ["migrate", "--hunter2"],
      "unknown option of 'prog migrate'",
    ],
    ["an unknown letter", ["migrate", "-x"], "unknown option of 'prog migrate': -x"],
  ];
  for (const [name, args, message, about] of refused) {
    it(`refuses ${name}`, () =>
      assert.throws(() => called(...args), {
        name: "Error",
        message,
        ...(about === undefined ? {} : { about }),
      }));
  }

  it("gives a call, help, or a UsageError that repeats no long argument", () => {
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
      // The value of an option is not a word of the command, and options may follow an argument.
      assert.deepEqual(offered("-c", "thing", "migrate", "s"), ["status"]);
      assert.deepEqual(offered("--config", "=", "f", "thing", ""), ["add"]);
      assert.deepEqual(offered("thing", "add", "x", "--s"), ["--size"]);
      assert.deepEqual(offered("completion", "z"), ["zsh"]);
      assert.deepEqual(offered("--level", "h"), ["high"]);
      assert.deepEqual(offered("--level", "="), ["high", "low"]);
      assert.deepEqual(offered("--config", file.slice(0, -3)), [file]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("Findings", () => {
  it("prints a line for each check, and gives 1 if one is a fault", async (t) => {
    const written: string[] = [];
    t.mock.method(process.stdout, "write", (line: string) => written.push(line) > 0);
    const findings = new Findings((error) => `told: ${String(error)}`);
    await findings.attempt("well", async () => Promise.resolve(""));
    await findings.attempt("fair", async () => Promise.resolve({ warning: "soon over" }));
    const fine = findings.print({});
    await findings.attempt("thrown", async () => Promise.reject(new TypeError("x")));
    const failed = findings.print({ json: true });
    t.mock.restoreAll();
    assert.deepEqual([fine, failed], [0, 1]);
    assert.deepEqual(written.slice(0, 2), ["ok       well\n", "warning  fair: soon over\n"]);
    assert.deepEqual(JSON.parse(written.slice(2).join("")), {
      findings: [
        { check: "well", state: "ok", detail: "" },
        { check: "fair", state: "warning", detail: "soon over" },
        { check: "thrown", state: "fault", detail: "told: TypeError: x" },
      ],
    });
  });
});

describe("reportFailure", () => {
  it("names a package that is not installed, and says what to do", async (t) => {
    const written: string[] = [];
    t.mock.method(process.stderr, "write", (line: string) => written.push(line) > 0);
    const name: string = "@devplat/not-installed";
    const code = await import(name).catch((error: unknown) => reportFailure(PROGRAM, error, {}));
    t.mock.restoreAll();
    assert.equal(code, 1);
    assert.equal(
      written.join(""),
      "prog: the package @devplat/not-installed is not installed\nRun 'npm ci' in the folder of this program's sources.\n",
    );
  });
});

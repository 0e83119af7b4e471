import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { parseCommandLine, UsageError } from "@devplat/cli";
import { PROGRAM } from "./program.ts";

const parse = (...args: string[]) => parseCommandLine(PROGRAM, args, {});

describe("the command line", () => {
  it("without a command is help", () => {
    assert.deepEqual(parse(), { kind: "help", command: undefined, group: undefined });
    assert.deepEqual(parse("secrets"), { kind: "help", command: undefined, group: "secrets" });
  });

  it("help is that of the command behind it", () => {
    assert.deepEqual(parse("help"), parse());
    assert.deepEqual(parse("help", "secrets"), parse("secrets", "--help"));
    assert.deepEqual(parse("help", "secrets", "put"), parse("secrets", "put", "--help"));
    assert.throws(() => parse("help", "snyc"), /unknown command: snyc/);
  });

  it("takes global flags before and after the command, with = or without [agent 6.1]", () => {
    for (const args of [
      ["--config", "c.yaml", "--dry-run", "sync", "--log-level=warn"],
      ["sync", "--config=c.yaml", "--log-level", "warn", "--dry-run"],
    ]) {
      const parsed = parse(...args);
      assert.ok(parsed.kind === "command");
      assert.equal(parsed.command.name, "sync");
      const { config, logLevel, logFormat, dryRun } = parsed.invocation.flags;
      assert.deepEqual([config, logLevel, logFormat, dryRun], ["c.yaml", "warn", "auto", true]);
    }
  });

  it("takes commands of two words, and what follows as arguments", () => {
    const parsed = parse("secrets", "put", "a/b", "run=-", "list");
    assert.ok(parsed.kind === "command");
    assert.equal(parsed.command.name, "secrets put");
    assert.deepEqual(parsed.invocation.positionals, ["a/b", "run=-", "list"]);
  });

  const refused: [string, string[], RegExp][] = [
    ["--once outside run", ["sync", "--once"], /--once is an option of 'agent run' only/],
    [
      "an unknown log level",
      ["--log-level", "loud", "sync"],
      /--log-level takes one of: debug, info, warn, error/,
    ],
    ["an unknown log format", ["--log-format", "xml", "sync"], /--log-format takes one of: auto, text, json/],
    ["an unknown command", ["snyc"], /unknown command: snyc/],
    ["an unknown command, also with --help", ["snyc", "--help"], /unknown command: snyc/],
    ["an unknown command before its options", ["snyc", "--fast"], /unknown command: snyc/],
    ["what stands behind --", ["--", "sync"], /no command before/],
    ["agent ssh without a host", ["ssh", "add"], /'ssh add' needs: HOST/],
    [
      "--enable with --disable",
      ["ssh", "edit", "host", "--enable", "--disable"],
      /--enable and --disable exclude each other/,
    ],
    [
      "another choice of a setting",
      ["ssh", "add", "host", "--ask", "sometimes"],
      /--ask takes one of: never, first, always/,
    ],
    ["a port that is not a number", ["ssh", "add", "host", "--port", "ssh"], /--port takes a whole number/],
    ["an unknown option", ["sync", "--fast"], /unknown option of 'agent sync': --fast/],
    ["a flag without its value", ["sync", "--config"], /--config needs a value/],
    ["a value where none is taken", ["sync", "--dry-run=yes"], /--dry-run takes no value/],
    ["too many arguments", ["sync", "now"], /'sync' takes no arguments/],
    ["one argument too many", ["browse", "a", "b"], /'browse' takes at most 1 argument$/],
    ["too few arguments", ["secrets", "get"], /'secrets get' needs: KEY/],
  ];
  for (const [name, args, message] of refused)
    it(`refuses ${name} [agent 6.3]`, () => assert.throws(() => parse(...args), message));

  it("a wrong line of a command leads to that command's help, any other to the list", () => {
    const aboutOf = (...args: string[]): string => {
      try {
        parse(...args);
      } catch (error) {
        if (error instanceof UsageError) return error.about;
      }
      return assert.fail("not refused");
    };
    assert.equal(aboutOf("snyc"), "");
    assert.equal(aboutOf("secrets", "get"), "secrets get");
    assert.equal(aboutOf("sync", "--fast"), "sync");
    assert.equal(aboutOf("rules", "lsit"), "rules");
    assert.throws(() => parse("rules", "lsit"), /unknown command below 'rules': lsit/);
  });

  const mistyped: [string[], string][] = [
    [["sycn"], "unknown command: sycn; did you mean 'sync'?"],
    [["Sync"], "unknown command; did you mean 'sync'?"],
    [["secret", "put", "a", "b=c"], "unknown command: secret; did you mean 'secrets'?"],
    [["rules", "dif"], "unknown command below 'rules': dif; did you mean 'diff'?"],
    [["status", "--jsn"], "unknown option of 'agent status': --jsn; did you mean '--json'?"],
    [["sync", "--dryrun"], "unknown option of 'agent sync': --dryrun; did you mean '--dry-run'?"],
    [["ssh", "rmeove", "host"], "unknown command below 'ssh': rmeove; did you mean 'remove'?"],
    [
      ["ssh", "add", "h", "--scoket", "x"],
      "unknown option of 'agent ssh add': --scoket; did you mean '--socket'?",
    ],
    [["elephant"], "unknown command: elephant"],
    [["status", "--elephant"], "unknown option of 'agent status': --elephant"],
  ];
  for (const [args, message] of mistyped)
    it(`a mistyped word gets a suggestion if one is near: ${args.join(" ")}`, () =>
      assert.throws(() => parse(...args), { message }));

  it("--version alone is the command version", () => {
    const parsed = parse("--version");
    assert.ok(parsed.kind === "command");
    assert.equal(parsed.command.name, "version");
    assert.throws(() => parse("sync", "--version"), /unknown option of 'agent sync': --version/);
  });

  it("repeats nothing that could be a value [agent 5.30]", () => {
    for (const args of [
      ["S3cret!"],
      ["sync", "--S3cret!"],
      ["sync", "S3cret!"],
      ["sync", "--dry-run=S3cret!"],
    ]) {
      assert.throws(
        () => parse(...args),
        (error: Error) => !error.message.includes("S3cret!"),
      );
    }
  });

  it("every command of the table is in the guide [agent 5.29]", () => {
    const guide = readFileSync(new URL("../../../../docs/agent/commands.md", import.meta.url), "utf8");
    const missing = PROGRAM.commands.filter(({ name }) => !new RegExp(`\\bagent ${name}\\b`).test(guide));
    assert.deepEqual(
      missing.map(({ name }) => name),
      [],
    );
  });

  it("every command of the table can be loaded", async () => {
    for (const command of PROGRAM.commands)
      assert.equal(typeof (await command.load()), "function", command.name);
  });
});

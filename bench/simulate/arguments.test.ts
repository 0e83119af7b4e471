import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HELP, readArguments } from "./arguments.ts";

describe("arguments of the simulation", () => {
  it("are put into the scenario", () => {
    const line =
      "--jobs-per-hour 7200 --instances 4 --mix full=1,shallow=3 --cold --network-gbit 25 --balance random --json --enforce-reads";
    const { scenario, json, untilEnough } = readArguments(line.split(" "));
    assert.equal(scenario.instances, 4);
    assert.deepEqual(scenario.mix, { full: 1, shallow: 3, blobless: 0, behind: 0 });
    assert.equal(scenario.load.kind === "pushed" && scenario.load.jobsPerSecond, 2);
    assert.deepEqual([scenario.start, scenario.balance], ["cold", "random"]);
    assert.equal(scenario.machine.network, 3.125e9);
    assert.ok(json && !untilEnough && scenario.codeHost.enforced);
  });

  it("have defaults, and the help names each of them", () => {
    const { scenario, p99Seconds } = readArguments([]);
    assert.equal(scenario.instances, 2);
    assert.equal(p99Seconds, 5);
    for (const name of ["--jobs-per-hour", "--until-enough", "--mix", "--seed"])
      assert.ok(HELP.includes(name));
    assert.ok(Math.max(...HELP.split("\n").map((line) => line.length)) <= 120);
  });

  const wrong: readonly (readonly [string, readonly string[], RegExp])[] = [
    ["an unknown option", ["--speed", "3"], /--speed.*--help/],
    ["a positional argument", ["7"], /"7".*only options/],
    ["text in place of a number", ["--instances", "many"], /--instances "many".*whole number from 1 to 1000/],
    ["a broken number of instances", ["--instances", "1.5"], /--instances "1.5"/],
    ["no number", ["--zipf", ""], /--zipf ""/],
    ["a number above the limit", ["--jobs-per-hour", "1e12"], /--jobs-per-hour "1e12".*from 1 to/],
    ["an unknown kind", ["--mix", "deep=1"], /--mix "deep=1".*full, shallow/],
    ["a share that is not a number", ["--mix", "full="], /--mix "full="/],
    ["a mix of nothing", ["--mix", "full=0"], /at least one share/],
    ["an unknown balance", ["--balance", "hash"], /"repository" or "random"/],
  ];
  for (const [what, args, message] of wrong)
    it(`are refused: ${what}`, () => {
      assert.throws(() => readArguments(args), message);
    });
});

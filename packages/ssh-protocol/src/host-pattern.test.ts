import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { matchesHost, matchesPattern } from "./index.ts";

describe("host patterns", () => {
  it("match as ssh_config(5) says", () => {
    const table: readonly [string, string[], boolean][] = [
      ["host.example.com", ["host.example.com"], true],
      ["HOST.example.com", ["host.Example.com"], true],
      ["host.example.com", ["*.example.com"], true],
      ["example.com", ["*.example.com"], false],
      ["host", ["h?st"], true],
      ["hst", ["h?st"], false],
      ["hooost", ["h*t"], true],
      ["host", ["host*"], true],
      ["host", ["*"], true],
      ["", ["*"], true],
      ["", [], false],
      ["host", [], false],
      ["host", ["!host"], false],
      ["host", ["!other"], false],
      ["host", ["*", "!host"], false],
      ["host", ["!host", "*"], false],
      ["host", ["!other", "*"], true],
      ["[host]:22", ["[host]:*"], true],
      ["h.st", ["h?st"], true],
      ["hxst", ["h.st"], false],
      ["a+b", ["a+b"], true],
    ];
    for (const [name, patterns, expected] of table) {
      assert.equal(matchesHost(name, patterns), expected, `${name} ${patterns.join(",")}`);
    }
  });

  it("give the same result as a regular expression", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "."), maxLength: 8 });
    const patterns = fc.string({ unit: fc.constantFrom("a", "b", ".", "*", "?"), maxLength: 8 });
    fc.assert(
      fc.property(letters, patterns, (text, pattern) => {
        const source = pattern.replaceAll(".", "\\.").replaceAll("?", ".").replaceAll("*", ".*");
        assert.equal(matchesPattern(text, pattern), new RegExp(`^${source}$`).test(text));
      }),
      { numRuns: 2000 },
    );
  });

  it("end soon for a pattern with many stars", () => {
    assert.equal(matchesPattern("a".repeat(2000), `${"*a".repeat(500)}b`), false);
  });
});

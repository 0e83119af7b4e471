import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { z } from "zod";
import { parseConfigDocument } from "./document.ts";
import { ConfigError, environmentKeys, environmentValue, validateConfig } from "./index.ts";

const schema = z.strictObject({
  cache: z
    .strictObject({ enabled: z.boolean().default(false), storage_path: z.string().default("data") })
    .prefault({}),
  limits: z.strictObject({ seconds: z.int().min(1).max(3600).default(30) }).prefault({}),
  owners: z.array(z.string()).default([]),
  rules: z.array(z.strictObject({ name: z.string().min(1), kind: z.enum(["a", "b"]) })).default([]),
});

function faults(text: string): string[] {
  try {
    const document = parseConfigDocument("c.yaml", text);
    validateConfig(schema, document.value, (path) => ({ source: "c.yaml", ...document.position(path) }));
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message.split("\n");
  }
}

describe("a configuration file", () => {
  const table: [string, string, string[]][] = [
    ["an empty file gives the defaults", "", []],
    ["a comment only gives the defaults", "# nothing\n", []],
    [
      "an unknown key, with what was meant",
      "cache:\n  enabld: true\n",
      ["c.yaml:2:3: cache.enabld: unknown key; did you mean 'enabled'?"],
    ],
    ["an unknown key far from any other", "zebra: 1\n", ["c.yaml:1:1: zebra: unknown key"]],
    ["a wrong type", "cache:\n  enabled: 3\n", ["c.yaml:2:3: cache.enabled: expected true or false"]],
    ["a number out of range", "limits:\n  seconds: 0\n", ["c.yaml:2:3: limits.seconds: must be at least 1"]],
    ["a fraction", "limits: {seconds: 1.5}\n", ["c.yaml:1:10: limits.seconds: expected a whole number"]],
    [
      "a value out of a list",
      "rules:\n  - name: x\n    kind: c\n",
      ["c.yaml:3:5: rules[0].kind: expected one of: a, b"],
    ],
    ["a missing key", "rules:\n  - kind: a\n", ["c.yaml:2:5: rules[0].name: required, but missing"]],
    ["a duplicate key", "cache: {}\ncache: {}\n", ["c.yaml:2:1: this key is given twice"]],
    [
      "a tab as indentation",
      "cache:\n\tenabled: true\n",
      ["c.yaml:2:1: a tab is used for indentation; YAML takes spaces only"],
    ],
    [
      "an alias without its anchor",
      "limits: {seconds: 3}\ncache: {storage_path: *hunter2}\n",
      ["c.yaml:2:23: this alias (*) names no anchor (&) above it"],
    ],
    ["two documents", "cache: {}\n---\ncache: {}\n", ["c.yaml:2:1: holds more than one document"]],
  ];
  for (const [name, text, expected] of table) {
    it(name, () => assert.deepEqual(faults(text), expected));
  }

  it("never quotes what it could not read [agent 18.5]", () => {
    const text = 'cache:\n  storage_path: "hunter2-secret\n  enabled: *hunter2\n';
    const found = faults(text).join("\n");
    assert.notEqual(found, "");
    assert.doesNotMatch(found, /hunter2/);
  });

  it("refuses a nest of aliases", () => {
    const levels = Array.from({ length: 12 }, (_, i) =>
      i === 0 ? "a0: &a0 [x]" : `a${i}: &a${i} [${`*a${i - 1},`.repeat(9)}]`,
    );
    assert.match(faults(levels.join("\n"))[0] ?? "", /alias/);
  });
});

describe("environment variables", () => {
  it("have one name for each leaf key", () => {
    const names = environmentKeys(schema, "SVC").map((key) => key.variable);
    assert.deepEqual(names, [
      "SVC_CACHE_ENABLED",
      "SVC_CACHE_STORAGE_PATH",
      "SVC_LIMITS_SECONDS",
      "SVC_OWNERS",
      "SVC_RULES",
    ]);
  });

  it("give the type that their key takes, and leave what does not fit to the schema", () => {
    assert.equal(environmentValue(schema, ["cache", "enabled"], "true"), true);
    assert.equal(environmentValue(schema, ["cache", "enabled"], "yes"), "yes");
    assert.equal(environmentValue(schema, ["limits", "seconds"], "12"), 12);
    assert.deepEqual(environmentValue(schema, ["owners"], "a, b,,c"), ["a", "b", "c"]);
    assert.deepEqual(environmentValue(schema, ["owners"], `["a,b", "c"]`), ["a,b", "c"]);
    assert.equal(environmentValue(schema, ["owners"], "[broken"), "[broken");
    assert.equal(environmentValue(schema, ["cache", "storage_path"], "12"), "12");
  });
});

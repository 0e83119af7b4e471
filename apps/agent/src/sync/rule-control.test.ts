import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { DocumentFormat } from "@devplat/document-edit";
import type { Preview } from "./engine.ts";
import { RuleSwitch } from "./rule-control.ts";
import type { Rule } from "../config/sections/rule.ts";

const RULES = [
  { name: "one", paused: false },
  { name: "fixed", paused: true },
] as unknown as readonly Rule[];

function build(preview: Partial<Preview> = {}): {
  control: RuleSwitch;
  paused: Set<string>;
  changes: () => number;
} {
  const paused = new Set<string>();
  let changes = 0;
  const control = new RuleSwitch({
    rules: () => RULES,
    paused: {
      set: async (rule, on) => {
        const before = paused.has(rule);
        if (on) paused.add(rule);
        else paused.delete(rule);
        return before !== on;
      },
    },
    preview: async () => ({ files: [], failures: new Map(), missing: new Map(), ...preview }),
    onChange: () => void changes++,
  });
  return { control, paused, changes: () => changes };
}

describe("RuleSwitch", () => {
  it("pauses and resumes, and has a cycle take it up only where something changed [agent 16.1]", async () => {
    const { control, paused, changes } = build();
    assert.equal(await control.setPaused("one", true), "done");
    assert.equal(await control.setPaused("one", true), "done");
    assert.deepEqual([...paused], ["one"]);
    assert.equal(changes(), 1);
    assert.equal(await control.setPaused("one", false), "done");
    assert.equal(changes(), 2);
  });

  it("a rule that the configuration pauses is not resumed, an unknown one not paused", async () => {
    const { control, changes } = build();
    assert.equal(await control.setPaused("fixed", false), "configured");
    assert.equal(await control.setPaused("other", true), "unknown_rule");
    assert.equal(changes(), 0);
  });

  it("shows a rule's file with every value masked, or the reason why there is nothing", async () => {
    const format = {
      name: "yaml",
      mask: (text: string) => text.replaceAll(/: .*/g, ": ••••"),
    } as DocumentFormat;
    const file = { path: "/x", format, existing: Buffer.from("a: old\n"), next: Buffer.from("a: new\n") };
    const { control } = build({
      files: [
        { ...file, rules: ["one"] },
        { ...file, rules: ["fixed"], path: "/y" },
      ],
      failures: new Map([["fixed", "cannot be read"]]),
    });
    const { signal } = new AbortController();
    const next = await control.nextChange("one", signal);
    assert.ok(next !== undefined && "diff" in next);
    assert.match(next.diff, /^--- \/x\n\+\+\+ \/x\n@@ .*@@\n-a: ••••\n\+a: ••••\n$/);
    assert.deepEqual(await control.nextChange("fixed", signal), { problem: "cannot be read" });
    assert.equal(await control.nextChange("other", signal), undefined);
  });
});

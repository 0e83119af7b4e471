import { describe, it } from "node:test";
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { promtoolProgram } from "@devplat/testkit";

const RULES = resolve(import.meta.dirname, "../../deploy/prometheus");

/** Runs Prometheus's own checker. */
function promtool(...args: string[]): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync(promtoolProgram(), args, { cwd: RULES, encoding: "utf8" });
  return { status, text: stdout + stderr };
}

describe("deploy/prometheus", () => {
  it("has rules that Prometheus accepts", () => {
    const { status, text } = promtool("check", "rules", "svc.rules.yaml");
    assert.equal(status, 0, text);
    assert.match(text, /SUCCESS: \d\d rules found/);
  });

  it("has alerts that fire when they should, and only then", () => {
    const { status, text } = promtool("test", "rules", "svc.rules.test.yaml");
    assert.equal(status, 0, text);
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hasSameInputs, isWaiting, newRecord, nextRecord, type RuleEvent } from "./rule-state.ts";
import { RETRY_ALL, RETRY_NONE, includes, withSecret } from "./retry-scope.ts";
import type { RuleRecord } from "./state.ts";
import { rule, yaml } from "./workspace.test-kit.ts";

const NOW = Date.parse("2026-01-02T03:04:05Z");
const a = rule(yaml("a", "k", "~/f.yaml", {}, { run: { command: ["true"], timeout: "1s" } }));
const RUN = { at: "", exit_code: 0, timed_out: false, duration_ms: 1, stdout_bytes: 0, stderr_bytes: 0 };
const WRITTEN: RuleEvent = {
  kind: "written",
  rule: a,
  file: "/home/f.yaml",
  content: { inputs: { k: "1@5" }, environment: ["HOME"], config: "fingerprint", version: 1 },
  keys: { managed: [["token"]], found: [] },
};
const FAILED: RuleEvent = { kind: "failed", error: new Error("it may quote a value") };

/** The record after events, one second apart. */
function after(...events: readonly RuleEvent[]): RuleRecord {
  return events.reduce((record, event, i) => nextRecord(record, event, NOW + i * 1000), newRecord(a));
}

describe("the state of a rule", () => {
  it("written: ok, with what the content was made from", () => {
    const record = after(WRITTEN);
    assert.equal(record.state, "ok");
    assert.equal(record.last_synced, "2026-01-02T03:04:05.000Z");
    assert.deepEqual(record.inputs, { k: "1@5" });
    assert.deepEqual(record.managed, [["token"]]);
    assert.equal(record.target.file, "/home/f.yaml");
    assert.ok(hasSameInputs(record, new Map([["k", "1@5"]]), "fingerprint"));
    assert.ok(!hasSameInputs(record, new Map([["k", "2@5"]]), "fingerprint"));
    assert.ok(!hasSameInputs(record, new Map([["k", undefined]]), "fingerprint"));
    assert.ok(!hasSameInputs(record, new Map([["k", "1@5"]]), "another"));
  });

  it("failed: waits longer each time, keeps what was written, and quotes no value", () => {
    const [first, second] = [after(WRITTEN, FAILED), after(WRITTEN, FAILED, FAILED)];
    assert.equal(first.state, "failed");
    assert.equal(first.error, "internal error (Error)");
    assert.deepEqual(
      [first.managed, first.last_synced],
      [after(WRITTEN).managed, after(WRITTEN).last_synced],
    );
    const waitOf = (record: RuleRecord): number =>
      Date.parse(record.next_attempt ?? "") - Date.parse(record.last_attempt ?? "");
    assert.ok(waitOf(second) > waitOf(first));
    assert.ok(isWaiting(second, NOW + 2000));
    assert.ok(!isWaiting(second, NOW + 3_600_000), "the wait is over");
    assert.ok(!isWaiting(second, NOW - 86_400_000), "a clock that was set back by a day");
    assert.deepEqual(
      [after(FAILED, WRITTEN).next_attempt, after(FAILED, WRITTEN).consecutive_failures],
      [null, 0],
    );
  });

  it("missing: keeps the keys that it owns, until they are removed from the file", () => {
    const record = after(WRITTEN, { kind: "missing", message: "nothing is stored under k" });
    assert.deepEqual([record.state, record.version, record.inputs], ["missing", null, {}]);
    assert.deepEqual(record.managed, [["token"]]);
    const cleaned = nextRecord(record, { kind: "cleaned", keys: { managed: [], found: [] } }, NOW);
    assert.deepEqual([cleaned.state, cleaned.managed], ["missing", []]);
  });

  it("paused: no next try", () => {
    assert.deepEqual(
      [after(FAILED, { kind: "paused" }).state, after(FAILED, { kind: "paused" }).next_attempt],
      ["paused", null],
    );
  });

  it("unchanged: only the time of the attempt changes", () => {
    const before = after(WRITTEN);
    const next = nextRecord(before, { kind: "unchanged" }, NOW + 9000);
    assert.deepEqual(next, { ...before, last_attempt: "2026-01-02T03:04:14.000Z" });
  });

  it("a command stays due until it has succeeded, and a failed one fails the rule", () => {
    const due = after({ kind: "command_due" }, WRITTEN);
    assert.ok(due.run_pending);
    assert.ok(!hasSameInputs(due, new Map([["k", "1@5"]]), "fingerprint"));
    assert.ok(!nextRecord(due, { kind: "command_ended", run: RUN }, NOW).run_pending);
    for (const [change, error] of [
      [{ exit_code: 3 }, "the command ended with exit code 3"],
      [{ exit_code: null }, "the command could not be started or was killed"],
      [{ timed_out: true }, "the command did not end within its time-out"],
    ] as const) {
      const run = { ...RUN, ...change };
      const failed = nextRecord(due, { kind: "command_ended", run }, NOW);
      assert.deepEqual(
        [failed.state, failed.error, failed.run_pending, failed.last_run],
        ["failed", error, true, run],
      );
    }
  });

  it("an event changes no record that is already there", () => {
    const record = Object.freeze(after(WRITTEN));
    for (const event of [FAILED, WRITTEN, { kind: "paused" }, { kind: "command_due" }] as const)
      assert.notEqual(nextRecord(record, event, NOW), record);
  });
});

describe("the failed rules that a cycle tries", () => {
  it("all, one by its name, or those that may read a changed secret", () => {
    const record = { ...newRecord(a), inputs: { other: "1@1" } };
    const template = rule(yaml("t", "t", "~/f.yaml", { template: '{{ secret "x" }}' }));
    assert.ok(includes(RETRY_ALL, a, record));
    assert.ok(!includes(RETRY_NONE, a, record));
    assert.ok(includes({ kind: "rule", name: "a" }, a, record));
    assert.ok(!includes({ kind: "rule", name: "b" }, a, record));
    assert.ok(includes(withSecret(RETRY_NONE, "k"), a, record));
    assert.ok(includes(withSecret(RETRY_NONE, "other"), a, record), "it has read it before");
    assert.ok(!includes(withSecret(RETRY_NONE, "x"), a, record));
    assert.ok(includes(withSecret(RETRY_NONE, "x"), template, newRecord(template)));
    assert.ok(!includes(RETRY_NONE, template, newRecord(template)));
  });

  it("a changed secret adds to the others, and takes nothing from all", () => {
    const both = withSecret(withSecret(RETRY_NONE, "k"), "x");
    assert.deepEqual(both, { kind: "secrets", paths: new Set(["k", "x"]) });
    assert.equal(withSecret(RETRY_ALL, "k"), RETRY_ALL);
  });
});

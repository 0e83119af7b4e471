import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { EnrolmentEngine } from "./engine.ts";
import {
  isDue,
  isRefreshDue,
  NEW_RECORD,
  nextActionAt,
  nextRecord,
  type EnrolmentEvent,
  type EnrolmentRecord,
} from "./enrolment-record.ts";

const NOW = 1_700_000_000_000;
const engine = (interactive: boolean, mirrors = false): EnrolmentEngine => ({
  interactive,
  mirrors,
  run: () => Promise.reject(new Error("not run")),
});
const STARTED: EnrolmentEvent = { kind: "started", byUser: true };
const STORED: EnrolmentEvent = { kind: "stored", refreshAt: undefined };
const FAILED: EnrolmentEvent = { kind: "failed", error: new Error("it may quote a value") };
const lookedUp = (isStored: boolean): EnrolmentEvent => ({ kind: "looked_up", isStored });

function after(...events: readonly EnrolmentEvent[]): EnrolmentRecord {
  return events.reduce((record, event) => nextRecord(record, event, NOW), NEW_RECORD);
}

describe("the record of an enrolment", () => {
  it("pending → running → complete, and failures are forgotten", () => {
    assert.equal(after(STARTED).state, "running");
    const record = after(FAILED, STARTED, STORED);
    assert.deepEqual([record.state, record.error, record.failures, record.retryAt], ["complete", null, 0, 0]);
  });

  it("a failure quotes no value, and each one makes the wait longer", () => {
    const [first, second] = [after(STARTED, FAILED), after(STARTED, FAILED, STARTED, FAILED)];
    assert.deepEqual([first.state, first.error], ["failed", "internal error (Error)"]);
    assert.ok(first.retryAt > NOW && second.retryAt > first.retryAt);
  });

  it("cancelled: as before the run", () => {
    for (const before of [[], [FAILED], [STORED], [{ kind: "skipped" }]] as const) {
      const { state } = after(...before);
      assert.equal(after(...before, STARTED, { kind: "cancelled" }).state, state);
    }
  });

  it("an engine that mirrors a secret stays complete while it runs by itself", () => {
    assert.equal(after(STORED, { kind: "started", byUser: false }).state, "complete");
    assert.equal(after(STORED, STARTED).state, "running");
    assert.equal(after({ kind: "started", byUser: false }).state, "running");
  });

  it("a lookup in the store: complete with a credential, pending without", () => {
    assert.equal(after(lookedUp(true)).state, "complete");
    assert.equal(after(lookedUp(true), lookedUp(false)).state, "pending");
    assert.equal(after({ kind: "skipped" }, lookedUp(false)).state, "pending");
    assert.equal(
      after(FAILED, lookedUp(true)).state,
      "failed",
      "a failure is not hidden by an old credential",
    );
  });

  it("reset: pending until it is done again, also over a restart", () => {
    const reset = after(STORED, { kind: "reset" }, lookedUp(true));
    assert.equal(reset.state, "pending");
    const restarted = after({ kind: "choices_read", skipped: false, again: true }, lookedUp(true));
    assert.equal(restarted.state, "pending");
    assert.equal(nextRecord(reset, STORED, NOW).again, false);
  });

  it("skipped by a choice that was read", () => {
    assert.equal(after({ kind: "choices_read", skipped: true, again: false }).state, "skipped");
    assert.equal(after(STORED, { kind: "choices_read", skipped: false, again: false }).state, "complete");
  });

  it("a renewal that fails leaves the credential complete, and says why", () => {
    const record = after(STORED, { kind: "refresh_planned", at: NOW }, { kind: "refresh_failed", error: 1 });
    assert.deepEqual(
      [record.state, record.error],
      ["complete", "could not be renewed: internal error (number)"],
    );
    assert.ok(isRefreshDue(after(STORED, { kind: "refresh_planned", at: NOW }), NOW));
    assert.ok(!isRefreshDue(record, NOW), "it waits first");
    assert.ok(!isRefreshDue(after(STORED), NOW), "no renewal is planned");
    const renewed = nextRecord(record, { kind: "refreshed", refreshAt: NOW + 1 }, NOW);
    assert.deepEqual([renewed.error, renewed.refreshAt, renewed.retryAt], [null, NOW + 1, 0]);
  });
});

describe("the actions of an enrolment without the user", () => {
  it("without a credential, engines without user run, mirrors too, interactive never", () => {
    assert.ok(isDue(NEW_RECORD, engine(false), NOW));
    assert.ok(!isDue(after(STORED), engine(false), NOW));
    assert.ok(isDue(after(STORED), engine(false, true), NOW));
    assert.ok(!isDue(NEW_RECORD, engine(true), NOW));
    const failed = after(FAILED);
    assert.ok(!isDue(failed, engine(false), NOW), "it waits after a failure");
    assert.ok(isDue(failed, engine(false), failed.retryAt));
  });

  it("the next action renews an interactive engine, and retries another one", () => {
    const planned = after(STORED, { kind: "refresh_planned", at: NOW + 5 });
    assert.equal(nextActionAt(planned, engine(true)), NOW + 5);
    assert.equal(nextActionAt(planned, engine(false)), undefined);
    const failed = after(FAILED);
    assert.equal(nextActionAt(failed, engine(false)), failed.retryAt);
    assert.equal(nextActionAt(failed, engine(true)), undefined);
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { waitBeforeCycle, type ScheduleInputs } from "./schedule.ts";

const HOUR_MS = 3_600_000;

function wait(inputs: Partial<ScheduleInputs>): number {
  const document = { rules: {} } as ScheduleInputs["document"];
  const usual = { intervalMs: HOUR_MS, authenticated: true, outages: 0, rules: [], document, now: 0 };
  return waitBeforeCycle({ ...usual, random: 0.5, ...inputs });
}

describe("waitBeforeCycle", () => {
  it("is the poll interval with a tenth of jitter either way", () => {
    assert.deepEqual(
      [0, 0.5, 1].map((random) => wait({ random }) / HOUR_MS),
      [0.9, 1, 1.1],
    );
  });

  it("is short without a sign-in, but not longer than the interval", () => {
    assert.equal(wait({ authenticated: false }), 5000);
    assert.equal(wait({ authenticated: false, intervalMs: 1000 }), 1000);
  });

  it("grows with the outages up to a minute, but not beyond the interval", () => {
    assert.ok(wait({ outages: 1 }) < 2000);
    assert.ok(wait({ outages: 50 }) > 20_000);
    assert.equal(wait({ outages: 50, intervalMs: 1000 }), 1000);
  });

  it("ends at the next try of a failed rule that is enabled", () => {
    const rules = [{ name: "a", enabled: true }] as unknown as ScheduleInputs["rules"];
    const at = (ms: number): ScheduleInputs["document"] =>
      ({
        rules: { a: { next_attempt: new Date(ms).toISOString() } },
      }) as unknown as ScheduleInputs["document"];
    assert.equal(wait({ rules, document: at(9000), now: 1000 }), 8000);
    assert.equal(wait({ rules, document: at(1000), now: 1000 }), 50, "never a busy loop");
    const disabled = rules.map((rule) => ({ ...rule, enabled: false }));
    assert.equal(wait({ rules: disabled, document: at(9000) }), HOUR_MS);
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  initialState,
  isAttempting,
  nextState,
  type ForwardEvent,
  type ForwardState,
} from "./forward-state.ts";
import { FAILURE_CLASSES, type FailureClass } from "./openssh/failure.ts";

const MINUTE_MS = 60_000;
const fail = (name: FailureClass): ForwardEvent => ({
  type: "failed",
  failure: { class: name, message: name },
});
const UP: ForwardEvent = { type: "connected", proven: true };
const TICK: ForwardEvent = { type: "tick" };

/** States after events that come at given times. */
function walk(events: readonly (readonly [at: number, event: ForwardEvent])[], random = 0.5): ForwardState {
  return events.reduce((state, [at, event]) => nextState(state, event, at, random), initialState(0));
}

describe("the state of a forward", () => {
  it("goes from disabled over connecting to connected and back", () => {
    assert.equal(walk([]).phase, "disabled");
    const connecting = walk([[1, { type: "enable" }]]);
    assert.deepEqual([connecting.phase, connecting.attempt, connecting.since], ["connecting", 1, 1]);
    const up = nextState(connecting, UP, 2, 0);
    assert.deepEqual([up.phase, up.proven, up.reconnects, up.attempt], ["connected", true, 0, 1]);
    assert.equal(nextState(up, { type: "disable" }, 3, 0).phase, "disabled");
  });

  it("backs off from 0.5 s to 30 s, with a fifth at random", () => {
    for (const [random, share] of [
      [0, 0.8],
      [0.5, 1],
      [1, 1.2],
    ] as const) {
      let state = walk([[0, { type: "enable" }]]);
      const waits: number[] = [];
      for (let at = 0; waits.length < 9;) {
        state = nextState(state, fail("refused"), at, random);
        assert.equal(state.phase, "offline");
        waits.push(Math.round((state.retryAt ?? NaN) - at));
        at = state.retryAt ?? NaN;
        assert.equal(nextState(state, TICK, at - 1, 0).attempt, state.attempt);
        state = nextState(state, TICK, at, 0);
      }
      const base = [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000];
      assert.deepEqual(
        waits,
        base.map((wait) => Math.round(wait * share)),
      );
    }
  });

  it("begins the back-off again only after a minute of being connected", () => {
    const lostAfter = (ms: number): number => {
      const before = walk([
        [0, { type: "enable" }],
        [0, fail("timeout")],
        [500, TICK],
        [500, UP],
        [500 + ms, fail("unreachable")],
      ]);
      return (before.retryAt ?? NaN) - 500 - ms;
    };
    assert.equal(lostAfter(MINUTE_MS - 1), 1000);
    assert.equal(lostAfter(MINUTE_MS), 500);
  });

  it("waits 5 min after a refused login, a wrong host key and an excess of ssh", () => {
    for (const [name, phase] of [
      ["authentication", "authentication-error"],
      ["host-key", "host-key-error"],
    ] as const) {
      const state = walk([
        [0, { type: "enable" }],
        [7, fail(name)],
      ]);
      assert.deepEqual([state.phase, state.retryAt], [phase, 7 + 5 * MINUTE_MS]);
    }
    const failure = { class: "local", message: "", waitLong: true } as const;
    const limited = walk([
      [0, { type: "enable" }],
      [0, { type: "failed", failure }],
    ]);
    assert.deepEqual([limited.phase, limited.retryAt], ["offline", 5 * MINUTE_MS]);
  });

  it("reconnects immediately when somebody else has the socket, and shows why", () => {
    const state = walk([
      [0, { type: "enable" }],
      [1, UP],
      [2, fail("socket-bind")],
    ]);
    assert.deepEqual([state.phase, state.failure?.class, state.attempt], ["reconnecting", "socket-bind", 2]);
    assert.equal(nextState(state, fail("socket-bind"), 3, 0).phase, "offline");
  });

  it("shows the last failure while it tries again, unless a person has begun that", () => {
    const offline = walk([
      [0, { type: "enable" }],
      [1, fail("host-key")],
    ]);
    for (const [cause, shown] of [
      ["network", "host-key"],
      ["wake", "host-key"],
      ["key", "host-key"],
      ["edit", undefined],
      ["retry", undefined],
    ] as const) {
      const next = nextState(offline, { type: "trigger", cause }, 2, 0);
      assert.deepEqual([next.phase, next.failure?.class], ["connecting", shown], cause);
    }
  });

  const events: fc.Arbitrary<ForwardEvent> = fc.oneof(
    fc.constantFrom<ForwardEvent>({ type: "enable" }, { type: "disable" }, UP, {
      type: "connected",
      proven: false,
    }),
    fc.constantFrom(...FAILURE_CLASSES).map(fail),
    { weight: 3, arbitrary: fc.constant(TICK) },
    fc
      .constantFrom("network", "wake", "key", "edit", "retry")
      .map((cause): ForwardEvent => ({ type: "trigger", cause })),
  );

  it("holds its rules for any row of events", () => {
    const rows = fc.array(
      fc.tuple(events, fc.nat(6 * MINUTE_MS), fc.double({ min: 0, max: 1, noNaN: true })),
    );
    fc.assert(
      fc.property(rows, (row) => {
        let state = initialState(0);
        let now = 0;
        let enabled = false;
        for (const [event, passed, random] of row) {
          now += passed;
          const before = state;
          state = nextState(before, event, now, random);
          if (event.type === "enable") enabled = true;
          if (event.type === "disable") enabled = false;
          assert.equal(state.phase === "disabled", !enabled);
          const isWaiting = ["offline", "authentication-error", "host-key-error"].includes(state.phase);
          // Exactly those that wait have a time for the next attempt and a reason.
          assert.equal(state.retryAt !== undefined, isWaiting);
          assert.ok(!isWaiting || state.failure !== undefined);
          assert.ok(state.phase === "connected" || !state.proven);
          // An attempt begins one at a time, and only these events begin one.
          const begun = state.attempt - before.attempt;
          assert.ok(begun === 0 || begun === 1);
          assert.ok(begun === 0 || isAttempting(state));
          if (event.type === "tick")
            assert.equal(begun, before.retryAt !== undefined && now >= before.retryAt ? 1 : 0);
          if (event.type === "connected") assert.equal(begun, 0);
          // A trigger ends every wait.
          if (event.type === "trigger" && enabled)
            assert.ok(isAttempting(state) || state.phase === "connected");
          assert.equal(state.phase === "connecting", isAttempting(state) && !state.wasConnected);
          if (state.retryAt !== undefined && state !== before) {
            const wait = state.retryAt - now;
            const isLong = state.phase !== "offline";
            assert.ok(isLong ? wait === 5 * MINUTE_MS : wait >= 400 && wait <= 36_000, String(wait));
          }
        }
      }),
    );
  });
});

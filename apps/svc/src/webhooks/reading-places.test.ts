import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { ProblemError, documentOf } from "../http/request/problem.ts";
import { ReadingPlaces } from "./reading-places.ts";

describe("places for bodies of webhooks", () => {
  const at = (): { places: ReadingPlaces; pass: (ms: number) => void } => {
    let now = 0;
    const clock: Clock = { now: () => now, monotonic: () => now, sleep: async () => undefined };
    return { places: new ReadingPlaces(clock), pass: (ms) => void (now += ms) };
  };
  const full = (error: unknown): boolean =>
    error instanceof ProblemError && documentOf(error.problem).status === 503;

  it("eight slow strangers do not keep the code host out: the oldest of them goes", () => {
    const { places, pass } = at();
    const strangers = Array.from({ length: 8 }, (_, index) => places.take(`192.0.2.${index}`));
    pass(1000);
    places.take("198.51.100.1");
    assert.deepEqual(
      strangers.map(({ signal }) => signal.aborted),
      [true, ...Array.from({ length: 7 }, () => false)],
    );
  });

  it("the address with most places loses one; an IPv6 network is one address", () => {
    const { places, pass } = at();
    const first = places.take("198.51.100.1");
    const many = Array.from({ length: 7 }, (_, index) => places.take(`2001:db8::${index}`));
    pass(1000);
    places.take("198.51.100.2");
    assert.equal(first.signal.aborted, false);
    assert.equal(many.filter(({ signal }) => signal.aborted).length, 1);
  });

  it("a reading that has only begun keeps its place; a new body is refused", () => {
    const { places, pass } = at();
    const taken = Array.from({ length: 8 }, () => places.take("192.0.2.1"));
    pass(999);
    assert.throws(() => places.take("198.51.100.1"), full);
    assert.ok(taken.every(({ signal }) => !signal.aborted));
  });

  it("a place that was left is free; leaving it again frees no other", () => {
    const { places, pass } = at();
    const taken = Array.from({ length: 8 }, () => places.take("192.0.2.1"));
    pass(1000);
    places.take("198.51.100.1");
    taken[0]?.leave();
    pass(-500);
    assert.throws(() => places.take("198.51.100.2"), full);
    taken[1]?.leave();
    places.take("198.51.100.2");
  });
});

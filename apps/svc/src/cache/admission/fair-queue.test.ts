import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { ManualClock } from "../../access/manual-clock.test-kit.ts";
import { FairQueue, type Place, type QueuedWork } from "./fair-queue.ts";

const MB = 1024 * 1024;

describe("FairQueue", () => {
  let clock: ManualClock;
  beforeEach(() => {
    clock = new ManualClock();
  });

  const work = (client: string, weight = MB, group = "r"): QueuedWork => ({ client, weight, group });

  /** Enters works, and runs them one after the other. @returns the names in the order in which they got places */
  const orderOf = async (
    queue: FairQueue,
    works: readonly (QueuedWork & { name: string })[],
  ): Promise<string[]> => {
    const holder = queue.tryTake(work("holder", 0));
    const order: string[] = [];
    const over = works.map(({ name, ...each }) =>
      queue.enter(each).admitted.then((place) => {
        order.push(name);
        place.release();
      }),
    );
    holder?.release();
    await Promise.all(over);
    return order;
  };

  it("one client's many works do not starve another's", async () => {
    const queue = new FairQueue({ max: 1, maxPerGroup: Infinity }, clock);
    const many = Array.from({ length: 10 }, (_, at) => ({ ...work("a"), name: `a${at}` }));
    const order = await orderOf(queue, [...many, { ...work("b"), name: "b0" }, { ...work("b"), name: "b1" }]);
    assert.ok(order.indexOf("b0") <= 1, order.join(" "));
    assert.ok(order.indexOf("b1") <= 3, order.join(" "));
    assert.deepEqual(
      order.filter((name) => name.startsWith("a")),
      many.map(({ name }) => name),
    );
  });

  it("a client with small works gets more of them than one with large works", async () => {
    const queue = new FairQueue({ max: 1, maxPerGroup: Infinity }, clock);
    const order = await orderOf(queue, [
      ...[0, 1, 2].map((at) => ({ ...work("large", 100 * MB), name: `large${at}` })),
      ...[0, 1, 2, 3].map((at) => ({ ...work("small", 20 * MB), name: `small${at}` })),
    ]);
    assert.ok(order.indexOf("large1") > order.indexOf("small3"), order.join(" "));
  });

  it("works that are first come before all others", async () => {
    const queue = new FairQueue({ max: 1, maxPerGroup: Infinity }, clock);
    const order = await orderOf(queue, [
      { ...work("a"), name: "a" },
      { ...work("b"), name: "fill", first: true },
    ]);
    assert.deepEqual(order, ["fill", "a"]);
  });

  it("gives places per group, in order, and so many over all [svc 2.26]", async () => {
    const queue = new FairQueue({ max: 3, maxPerGroup: 2 }, clock);
    const a1 = queue.tryTake(work("x", MB, "a"));
    assert.ok(a1 !== undefined && queue.tryTake(work("x", MB, "a")) !== undefined);
    assert.equal(queue.tryTake(work("x", MB, "a")), undefined);
    const order: string[] = [];
    const third = queue.enter(work("x", MB, "a"));
    void third.admitted.then(() => order.push("a"));
    assert.ok(queue.tryTake(work("x", MB, "b")) !== undefined);
    const other = queue.enter(work("x", MB, "c"));
    void other.admitted.then(() => order.push("c"));
    assert.equal(queue.waiting, 2);
    a1.release();
    a1.release();
    await third.admitted;
    assert.deepEqual([order, queue.waiting, queue.running], [["a"], 1, 3]);
  });

  it("a work that leaves gives its place back, also one that it just got", async () => {
    const queue = new FairQueue({ max: 1, maxPerGroup: 1 }, clock);
    const running = queue.tryTake(work("a"));
    const left = queue.enter(work("b"));
    const next = queue.enter(work("c"));
    left.leave();
    running?.release();
    const place = await next.admitted;
    const late = queue.enter(work("d"));
    place.release();
    late.leave();
    assert.equal(queue.running, 0);
  });

  it("says how many are ahead, and when the place comes at the present speed", () => {
    const queue = new FairQueue({ max: 2, maxPerGroup: Infinity }, clock);
    const places = [queue.tryTake(work("a", 100 * MB)), queue.tryTake(work("b", 100 * MB))];
    const [first, second] = [queue.enter(work("c", 100 * MB)), queue.enter(work("d", 100 * MB))];
    assert.deepEqual([first.ahead, second.ahead], [0, 1]);
    assert.equal(first.expectedMs, undefined, "nothing has moved");
    clock.ms += 10_000;
    for (const place of places) place?.moved(50 * MB);
    // 100 MB are left at 10 MB/s; the place comes after one of two works.
    assert.equal(first.expectedMs, 5000);
    // 200 MB, two of three works.
    assert.equal(Math.round(second.expectedMs ?? 0), 13_333);
    clock.ms += 90_000;
    assert.ok((first.expectedMs ?? 0) > 40_000, "a transfer that stalls is slow");
  });

  it("with a full group only its own works count", () => {
    const queue = new FairQueue({ max: 10, maxPerGroup: 1 }, clock);
    const slow = queue.tryTake(work("a", 100 * MB, "slow"));
    const fast = queue.tryTake(work("b", 100 * MB, "fast"));
    const waiting = queue.enter(work("c", 100 * MB, "slow"));
    clock.ms += 10_000;
    slow?.moved(10 * MB);
    fast?.moved(100 * MB);
    assert.equal(waiting.expectedMs, 90_000);
  });

  it("never gives more places than there are, and loses none (random)", async () => {
    const seed = testSeed();
    const random = randomFrom(seed);
    const queue = new FairQueue({ max: 3, maxPerGroup: 2 }, clock);
    const held = new Set<{ place: Place; group: string }>();
    const waiting = new Set<ReturnType<FairQueue["enter"]>>();
    for (let step = 0; step < 2000; step++) {
      const group = `g${Math.floor(random() * 3)}`;
      const one = work(`c${Math.floor(random() * 4)}`, Math.floor(random() * 100) * MB, group);
      const what = random();
      if (what < 0.4) {
        const entry = queue.enter(one);
        waiting.add(entry);
        void entry.admitted.then((place) => {
          if (waiting.delete(entry)) held.add({ place, group });
        });
      } else if (what < 0.5) {
        const [entry] = waiting;
        if (entry !== undefined) {
          waiting.delete(entry);
          entry.leave();
        }
      } else {
        const [one_] = held;
        if (one_ !== undefined) {
          held.delete(one_);
          one_.place.release();
        }
      }
      await Promise.resolve();
      await Promise.resolve();
      assert.ok(held.size <= 3, `seed ${seed}, step ${step}`);
      for (const name of ["g0", "g1", "g2"]) {
        assert.ok([...held].filter((each) => each.group === name).length <= 2, `seed ${seed}, step ${step}`);
      }
    }
    for (const entry of waiting) entry.leave();
    waiting.clear();
    await Promise.resolve();
    for (const { place } of held) place.release();
    assert.deepEqual([queue.running, queue.waiting], [0, 0], `seed ${seed}`);
    assert.ok(queue.tryTake(work("z")) !== undefined);
  });
});

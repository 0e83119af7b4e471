import assert from "node:assert/strict";
import { mock, after, before, beforeEach, describe, it } from "node:test";
import { ManualClock } from "../../access/manual-clock.test-kit.ts";
import { AdmissionQueue } from "./admission-queue.ts";
import { NotAdmitted, admitted } from "./admit-response.ts";
import { ClientWait } from "./client-wait.ts";
import type { Place, QueuedWork } from "./fair-queue.ts";
import { Overload } from "./overload.ts";
import { ToldWaiters } from "./told-waiters.ts";

const MB = 1024 * 1024;
const SILENT_MS = 10_000;
const QUEUE_MS = 60_000;
const BEGINNING = Buffer.from("000dpackfile\n");
const MAX_TOLD = 3;

describe("AdmissionQueue", () => {
  let clock: ManualClock;
  let told: ToldWaiters;
  let queue: AdmissionQueue;
  let results: string[];
  const never = new AbortController().signal;
  before(() => mock.timers.enable({ apis: ["setTimeout"] }));
  after(() => mock.timers.reset());
  beforeEach(() => {
    clock = new ManualClock();
    told = new ToldWaiters(MAX_TOLD);
    results = [];
    queue = new AdmissionQueue({
      name: "responses",
      places: { max: 1, maxPerGroup: Infinity },
      told,
      rules: () => ({ silentMs: SILENT_MS, queueMs: QUEUE_MS }),
      observer: { queued: (_, result) => void results.push(result) },
      clock,
    });
  });

  const work = (client = "a", weight = 100 * MB): QueuedWork => ({ group: "r", client, weight });
  const waitOf = (beginning: Buffer | undefined = BEGINNING): ClientWait =>
    new ClientWait({ since: clock.monotonic(), client: "a", beginning });
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  };
  const pass = async (ms: number): Promise<void> => {
    await settle();
    clock.ms += ms;
    mock.timers.tick(ms);
    await settle();
  };
  /** State of a wait. */
  const stateOf = async (
    waiting: Promise<Place | "refused" | undefined>,
    wait: ClientWait,
  ): Promise<"served" | "refused" | "left" | "told" | "silent"> => {
    const result = await Promise.race([waiting, settle().then(() => "waiting" as const)]);
    if (result === "waiting") return wait.isServed ? "told" : "silent";
    return result === undefined ? "left" : result === "refused" ? "refused" : "served";
  };
  const hold = async (): Promise<Place> => {
    const place = await queue.take(work("holder"), never, 0);
    assert.ok(place !== undefined);
    return place;
  };

  it("a free place is given without a wait", async () => {
    const wait = waitOf();
    assert.equal(await stateOf(queue.wait(work(), wait, never), wait), "served");
    assert.deepEqual(results, []);
  });

  it("a client gets no byte for 10 s; then it is told, and served after any time", async () => {
    const holder = await hold();
    const wait = waitOf();
    const waiting = queue.wait(work(), wait, never);
    await pass(SILENT_MS - 1);
    assert.equal(await stateOf(waiting, wait), "silent");
    holder.moved(90 * MB);
    await pass(1);
    assert.equal(await stateOf(waiting, wait), "told");
    const notice = await wait.told;
    assert.deepEqual([notice.beginning, notice.ahead(), told.count], [BEGINNING, 0, 1]);
    await pass(100 * QUEUE_MS);
    assert.equal(await stateOf(waiting, wait), "told");
    holder.release();
    assert.equal(await stateOf(waiting, wait), "served");
    assert.equal(told.count, 0);
    assert.deepEqual(results, ["served"]);
  });

  it("a client whose place cannot be had in time is refused after 10 s", async () => {
    const holder = await hold();
    const wait = waitOf();
    const waiting = queue.wait(work(), wait, never);
    await pass(SILENT_MS - 1);
    // 95 MB are left at 0.5 MB/s.
    holder.moved(5 * MB);
    await pass(1);
    assert.equal(await stateOf(waiting, wait), "refused");
    assert.equal(wait.isServed, false, "it has no byte");
    assert.equal(queue.waiting, 0);
    assert.deepEqual(results, ["refused"]);
  });

  it("of ten clients, those whose place comes in time are told, and the others refused", async () => {
    const holder = await hold();
    const waits = Array.from({ length: 10 }, () => waitOf());
    const all = waits.map((wait) => queue.wait(work(), wait, never));
    await settle();
    holder.moved(50 * MB);
    await pass(SILENT_MS);
    const states = await Promise.all(all.map(async (waiting, at) => stateOf(waiting, waits[at]!)));
    // 5 MB/s: the places come after 10, 30 and 50 seconds, and 10 have passed.
    assert.deepEqual(states, ["told", "told", ...Array.from({ length: 8 }, () => "refused")]);
  });

  it("the number of clients that were told is limited: the next one is refused", async () => {
    const holder = await hold();
    const waits = Array.from({ length: MAX_TOLD + 1 }, () => waitOf());
    const all = waits.map((wait, at) => queue.wait(work(`c${at}`, 1), wait, never));
    await settle();
    holder.moved(99 * MB);
    await pass(SILENT_MS);
    const states = await Promise.all(all.map(async (waiting, at) => stateOf(waiting, waits[at]!)));
    assert.deepEqual(states, ["told", "told", "told", "refused"]);
    assert.equal(told.isFull, true);
  });

  it("a client that cannot be told waits silently, for queue_seconds in all", async () => {
    const holder = await hold();
    const wait = new ClientWait({ since: clock.monotonic(), client: "a", beginning: undefined });
    const waiting = queue.wait(work(), wait, never);
    await settle();
    holder.moved(90 * MB);
    await pass(SILENT_MS);
    await pass(QUEUE_MS - SILENT_MS - 1);
    assert.equal(await stateOf(waiting, wait), "silent");
    await pass(1);
    assert.equal(await stateOf(waiting, wait), "refused");
  });

  it("a client that has bytes already is never refused", async () => {
    const holder = await hold();
    const wait = waitOf();
    wait.begun();
    const waiting = queue.wait(work(), wait, never);
    await pass(10 * QUEUE_MS);
    assert.equal(await stateOf(waiting, wait), "told");
    holder.release();
    assert.equal(await stateOf(waiting, wait), "served");
  });

  it("the silent time counts from the request, also in a second queue", async () => {
    const holder = await hold();
    const wait = waitOf();
    await pass(SILENT_MS);
    holder.moved(90 * MB);
    const waiting = queue.wait(work(), wait, never);
    await pass(0);
    assert.equal(await stateOf(waiting, wait), "told");
  });

  it("a client that leaves frees its position", async () => {
    await hold();
    const gone = new AbortController();
    const wait = waitOf();
    const waiting = queue.wait(work(), wait, gone.signal);
    await settle();
    gone.abort();
    assert.equal(await stateOf(waiting, wait), "left");
    assert.equal(queue.waiting, 0);
    assert.deepEqual(results, ["left"]);
  });

  it("work without a client is given up after its own time", async () => {
    const holder = await hold();
    assert.equal(await queue.take(work(), never, 0), undefined);
    const waiting = queue.take(work(), never, 500);
    await pass(500);
    assert.equal(await waiting, undefined);
    holder.release();
    assert.ok((await queue.take(work(), never, 0)) !== undefined);
  });

  describe("responses", () => {
    async function* response(chunks: readonly string[], ended: () => void): AsyncGenerator<Buffer> {
      try {
        for (const chunk of chunks) yield Buffer.from(chunk);
      } finally {
        ended();
      }
    }
    const read = async (chunks: AsyncIterable<Buffer>): Promise<string> => {
      let text = "";
      for await (const chunk of chunks) text += chunk.toString();
      return text;
    };
    const made = (bytes: number, wait = waitOf(), ended = (): void => undefined) =>
      admitted(
        { response: response(["head", "pack"], ended), weight: () => bytes, group: "r", wait, signal: never },
        queue,
        () => 16 * MB,
      );

    it("below heavy_mb a response never waits behind large ones", async () => {
      await hold();
      assert.equal(await read(made(16 * MB - 1)), "headpack");
      assert.deepEqual(results, []);
    });

    it("a heavy one waits before its first byte, and holds its place until it is made", async () => {
      const holder = await hold();
      const reading = read(made(16 * MB));
      await settle();
      assert.equal(queue.waiting, 1);
      holder.release();
      assert.equal(await reading, "headpack");
      assert.equal(queue.running, 0);
    });

    it("a refused one is ended, so that it releases its packs", async () => {
      await hold();
      let isEnded = false;
      const refused = assert.rejects(
        read(made(100 * MB, waitOf(), () => void (isEnded = true))),
        NotAdmitted,
      );
      // Full: nobody can be told.
      for (let at = 0; at < MAX_TOLD; at++) told.begin();
      await pass(SILENT_MS);
      await refused;
      assert.equal(isEnded, true);
    });

    it("a reader that stops releases the place", async () => {
      for await (const chunk of made(100 * MB)) {
        assert.equal(chunk.toString(), "head");
        assert.equal(queue.running, 1);
        break;
      }
      assert.equal(queue.running, 0);
    });
  });

  describe("readiness", () => {
    const others = (isReady: boolean) => ({ isAnotherReady: () => Promise.resolve(isReady) });
    it("is lost only when the limit is reached and another instance is ready", async () => {
      const alone = new Overload(told, others(false));
      const pair = new Overload(told, others(true));
      assert.deepEqual([await alone.isTurningAway(), await pair.isTurningAway()], [false, false]);
      const ends = Array.from({ length: MAX_TOLD }, () => told.begin());
      assert.deepEqual([await alone.isTurningAway(), await pair.isTurningAway()], [false, true]);
      ends[0]?.();
      assert.equal(await pair.isTurningAway(), false);
    });
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "@devplat/base";
import { Heartbeat } from "./heartbeat.ts";

/** A heartbeat whose intervals the test ends. */
class Stand {
  readonly silences: boolean[] = [];
  readonly end = new AbortController();
  pings = 0;
  #next: (() => void) | undefined;
  readonly heartbeat: Heartbeat;
  readonly result: Promise<number | undefined>;

  constructor() {
    const clock: Clock = {
      now: () => 0,
      monotonic: () => 0,
      sleep: async (_, signal) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#next = resolve;
        signal?.addEventListener("abort", () => resolve());
        await promise;
      },
    };
    this.heartbeat = new Heartbeat({
      ping: () => (this.pings += 1),
      clock,
      onSilence: (isSilent) => this.silences.push(isSilent),
    });
    this.result = this.heartbeat.run(this.end.signal);
  }

  async interval(): Promise<void> {
    this.#next?.();
    await nextTurn();
  }
}

describe("the heartbeat of the mount server", () => {
  it("goes on while each ping is answered, until its end", async () => {
    const stand = new Stand();
    for (let count = 0; count < 5; count++) {
      stand.heartbeat.answered();
      await stand.interval();
    }
    stand.end.abort();
    assert.equal(await stand.result, undefined);
    assert.equal(stand.pings, 6);
    assert.deepEqual(stand.silences, []);
  });

  it("reports silence after one interval without a response, and ends after two", async () => {
    const stand = new Stand();
    await stand.interval();
    assert.deepEqual(stand.silences, [true]);
    await stand.interval();
    assert.equal(await stand.result, 10_000);
  });

  it("forgets a silence when the process responds again", async () => {
    const stand = new Stand();
    await stand.interval();
    stand.heartbeat.answered();
    assert.deepEqual(stand.silences, [true, false]);
    await stand.interval();
    stand.heartbeat.answered();
    stand.end.abort();
    assert.equal(await stand.result, undefined);
  });
});

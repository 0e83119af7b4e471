import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { describe, it } from "node:test";
import { LateShare } from "./late-share.ts";

describe("LateShare", () => {
  it("says that the data has arrived, and of which fetch", async () => {
    using late = new LateShare(async () => Promise.resolve(7));
    assert.equal(late.signal.aborted, false);
    await setImmediate();
    assert.deepEqual([late.signal.aborted, late.fence], [true, 7]);
  });

  it("data that arrives after the end of the watch changes nothing", async () => {
    const arrival = Promise.withResolvers<number>();
    let watch: AbortSignal | undefined;
    const late = new LateShare(async (signal) => {
      watch = signal;
      return await arrival.promise;
    });
    late.end();
    arrival.resolve(7);
    await setImmediate();
    assert.deepEqual([watch?.aborted, late.signal.aborted, late.fence], [true, false, undefined]);
  });

  it("nothing arrives without another instance, or if its fetch gives no data", async () => {
    for (const arrival of [undefined, async () => Promise.resolve(undefined)]) {
      using late = new LateShare(arrival);
      await setImmediate();
      assert.deepEqual([late.signal.aborted, late.fence], [false, undefined]);
    }
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { IdleCollector } from "./idle-collector.ts";

const MEGABYTE = 1024 * 1024;

/** Runs one look for each entry: the bytes in use, and the share of the time that the thread worked. */
async function collections(
  looks: readonly { readonly used: number; readonly busy: number }[],
): Promise<number[]> {
  const ended = new AbortController();
  const found: number[] = [];
  let at = -1;
  let used = 0;
  const clock: Pick<Clock, "sleep"> = {
    sleep: () => {
      const look = looks[++at];
      if (look === undefined) ended.abort();
      else used = look.used * MEGABYTE;
      return Promise.resolve();
    },
  };
  const collector = new IdleCollector(clock as Clock, {
    usedBytes: () => used,
    collect: () => {
      found.push(at);
      used = 40 * MEGABYTE;
    },
    utilization: (since) => ({
      idle: 0,
      active: 0,
      utilization: since === undefined ? 0 : (looks[at]?.busy ?? 0),
    }),
  });
  await collector.run(ended.signal);
  return found;
}

describe("IdleCollector", () => {
  it("collects once after a burst, when the thread is idle", async () => {
    const busy = { used: 400, busy: 0.9 };
    const idle = { used: 400, busy: 0.01 };
    assert.deepEqual(
      await collections([busy, busy, idle, { used: 41, busy: 0 }, { used: 45, busy: 0 }]),
      [2],
    );
  });

  it("does not collect little that is new; an unused thread collects less", async () => {
    const looks = [100, 60, 71, 73].map((used) => ({ used, busy: 0.05 }));
    assert.deepEqual(await collections(looks), [0, 3]);
    const unused = [100, 41, 47, 49].map((used) => ({ used, busy: 0 }));
    assert.deepEqual(await collections(unused), [0, 3]);
  });
});

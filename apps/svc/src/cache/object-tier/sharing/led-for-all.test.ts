import assert from "node:assert/strict";
import { setImmediate as tick } from "node:timers/promises";
import { describe, it } from "node:test";
import { silentLogger } from "@devplat/base";
import { repositoryId } from "../../../access/repository-id.ts";
import { BackgroundWork } from "../../background-work.ts";
import { LedForAll } from "./led-for-all.ts";
import type { LedFetchReport } from "./shared-fetch-reports.ts";

const JOB = { kind: "response", id: repositoryId("acme", "widgets"), subject: "key", bytes: 0 };

/** A fetch of this instance, whose database, queue and clock the test plays. */
function ledFetch(how: { readonly onlyIfAwaited: boolean; readonly isThere?: boolean }) {
  const events: string[] = [];
  const reported: LedFetchReport[] = [];
  let wait: () => void = () => assert.fail("nobody listens");
  const uploaded = Promise.withResolvers<boolean>();
  const limits: (() => void)[] = [];
  const work = new BackgroundWork(silentLogger);
  const made = new LedForAll({
    fetch: {
      fence: 7,
      received: () => undefined,
      onAwaited: (callback) => void (wait = callback),
      uploading: () => void events.push("uploading"),
      end: async (state) => Promise.resolve(void events.push(`end ${state}`)),
    },
    job: JOB,
    queue: {
      add: () => void events.push("add"),
      hurry: () => void events.push("hurry"),
      ended: async () => uploaded.promise,
    },
    work,
    clock: {
      now: () => 0,
      monotonic: () => 0,
      sleep: async (_, signal) =>
        new Promise((resolve, reject) => {
          limits.push(resolve);
          signal?.addEventListener("abort", () => reject(new Error("ended")));
        }),
    },
    stopping: new AbortController().signal,
    onEnd: (end) => void reported.push(end),
    onlyIfAwaited: how.onlyIfAwaited,
    isThere: () => how.isThere ?? true,
  });
  return {
    made,
    events,
    reported,
    waits: () => wait(),
    /** The upload is done, or was dropped. */
    upload: (isDone: boolean) => uploaded.resolve(isDone),
    /** Time passes until each limit is over. */
    pass: () => limits.forEach((resolve) => resolve()),
    settled: async () => work.settled(),
  };
}

describe("LedForAll", () => {
  it("a response that nobody waits for is not uploaded, and ends as private", async () => {
    const { made, events, reported, pass, settled } = ledFetch({ onlyIfAwaited: true });
    made.complete();
    await tick();
    assert.deepEqual(events, ["uploading"], "others may still come");
    pass();
    await settled();
    assert.deepEqual(events, ["uploading", "end private"]);
    assert.deepEqual(reported, []);
  });

  it("a response that another instance waits for is uploaded before others", async () => {
    const { made, events, reported, waits, upload, settled } = ledFetch({ onlyIfAwaited: true });
    made.received(12, 100);
    waits();
    made.complete();
    await tick();
    assert.deepEqual(events, ["uploading", "add", "hurry"]);
    upload(true);
    await settled();
    assert.equal(events.at(-1), "end shared");
    assert.deepEqual(reported, [{ fence: 7, state: "shared", bytes: 12, ms: 0 }]);
  });

  it("an instance that comes after the transfer gets the response, too", async () => {
    const { made, events, waits, upload, settled } = ledFetch({ onlyIfAwaited: true });
    made.complete();
    await tick();
    waits();
    upload(true);
    await settled();
    assert.deepEqual(events, ["uploading", "add", "hurry", "end shared"]);
  });

  it("an upload that was dropped, or that no manifest names, ends as private", async () => {
    for (const [isThere, isDone] of [
      [false, true],
      [true, false],
    ] as const) {
      const { made, events, reported, waits, upload, settled } = ledFetch({ onlyIfAwaited: true, isThere });
      waits();
      made.complete();
      upload(isDone);
      await settled();
      assert.equal(events.at(-1), "end private");
      assert.equal(reported[0]?.state, "private");
    }
  });

  it("objects are uploaded in any case, and hurried when another instance waits", async () => {
    const { made, events, waits, upload, settled } = ledFetch({ onlyIfAwaited: false });
    made.complete();
    await tick();
    assert.deepEqual(events, ["uploading", "add"]);
    waits();
    await tick();
    assert.deepEqual(events, ["uploading", "add", "hurry"]);
    upload(true);
    await settled();
    assert.equal(events.at(-1), "end shared");
  });

  it("a fetch that is given up fails for the others immediately", async () => {
    const { made, events, reported, waits, settled } = ledFetch({ onlyIfAwaited: true });
    let told = 0;
    made.onAwaited(() => told++);
    waits();
    made.onAwaited(() => told++);
    assert.equal(told, 2);
    made.giveUp();
    await settled();
    assert.deepEqual(events, ["end failed"]);
    assert.equal(reported[0]?.state, "failed");
  });
});

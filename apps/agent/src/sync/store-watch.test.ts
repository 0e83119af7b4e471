import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger, type Clock } from "@devplat/base";
import { SecretStoreError, type SecretChange, type SecretStoreErrorCode } from "@devplat/secret-store";
import { StoreWatch, type EventsState } from "./store-watch.ts";

/** One call of `watch`. It fails with a code, or it opens, reports so many changes and breaks after a time. */
type Step = SecretStoreErrorCode | { readonly changes: number; readonly livesMs: number };

/** Runs a watch over these steps; time passes only in them and in its waits. Ends after the last. */
async function follow(steps: readonly Step[]) {
  const stop = new AbortController();
  let now = 0;
  const waits: number[] = [];
  const states: EventsState[] = [];
  const changes: SecretChange[] = [];
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    sleep: (ms) => {
      waits.push(ms);
      now += ms;
      return Promise.resolve();
    },
  };
  const queue = [...steps];
  async function* watch(_signal: AbortSignal, opened?: () => void): AsyncGenerator<SecretChange> {
    const step = queue.shift();
    if (step === undefined) return stop.abort();
    if (typeof step === "string") throw new SecretStoreError(step, "planted");
    opened?.();
    for (let i = 0; i < step.changes; i++) yield { path: `k${i}`, kind: "written" };
    now += step.livesMs;
    throw new SecretStoreError("unavailable", "planted");
  }
  const onChange = (change: SecretChange): void => void changes.push(change);
  const lines: string[] = [];
  const noted =
    (level: string) =>
    (_fields: unknown, text: string): void =>
      void lines.push(`${level}: ${text}`);
  const logger = { ...silentLogger, info: noted("info"), warn: noted("warn") };
  const subject = new StoreWatch({ store: { watch }, clock, logger });
  await subject.run(stop.signal, { onChange, onState: () => states.push(subject.state) });
  return { waits, states, changes, lines };
}

const SHORT = { changes: 0, livesMs: 1 };

describe("StoreWatch", () => {
  it("reopens a broken stream with waits up to half a minute, and polls until then [agent 11.7]", async () => {
    const { waits, states } = await follow(Array.from<Step>({ length: 12 }).fill("unavailable"));
    assert.equal(waits.length, 12);
    assert.ok((waits[0] ?? 0) <= 500 * 1.5 && Math.max(...waits) <= 30_000 * 1.5, waits.join(" "));
    assert.ok((waits.at(-1) ?? 0) > (waits[0] ?? 0));
    assert.deepEqual(new Set(states), new Set(["polling"]));
  });

  it("connected only while it is open, and every change is handed on", async () => {
    const { states, changes } = await follow([{ changes: 2, livesMs: 60_000 }, "unavailable", SHORT]);
    assert.deepEqual(states, ["connected", "polling", "polling", "connected", "polling"]);
    assert.equal(changes.length, 2);
  });

  it("a stream that opens and breaks immediately does not become a busy loop", async () => {
    const { waits } = await follow(Array.from({ length: 10 }, () => ({ ...SHORT })));
    assert.ok(waits.reduce((sum, ms) => sum + ms, 0) > 60_000, waits.join(" "));
  });

  it("a stream that was stable is opened again immediately", async () => {
    const steps: Step[] = [
      ...Array.from<Step>({ length: 9 }).fill("unavailable"),
      { changes: 1, livesMs: 60_000 },
    ];
    const { waits } = await follow(steps);
    assert.ok((waits.at(-1) ?? Infinity) <= 750, waits.join(" "));
  });

  it("reports unsupported and asks again after an hour, after denied in five minutes [agent 11.7]", async () => {
    const { waits, states, lines } = await follow(["unsupported", "denied"]);
    assert.deepEqual(lines, ["info: the token may not follow the store's events; it is polled"]);
    assert.deepEqual(waits, [3_600_000, 300_000]);
    assert.deepEqual(states, ["unsupported", "polling"]);
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "@devplat/base";
import { Health } from "./health.ts";
import { Readiness } from "./readiness.ts";
import { Activity } from "./telemetry/activity.ts";

interface World {
  readonly ping?: () => Promise<void>;
  readonly isStopping?: boolean;
  readonly isTurningAway?: () => Promise<boolean>;
}

function readinessOf({
  ping = async () => undefined,
  isStopping = false,
  isTurningAway = async () => false,
}: World): Readiness {
  const health = new Health({
    activity: new Activity(systemClock),
    ping,
    cacheFolder: undefined,
    bucket: undefined,
    differences: () => ({ settings: [], keyIds: [] }),
    certificateEnd: () => undefined,
    codeHost: "code.example",
    clock: systemClock,
  });
  return new Readiness({ isStopping: () => isStopping, health, overload: { isTurningAway } });
}

describe("Readiness", () => {
  const away = async () => Promise.reject(new Error("gone"));

  it("an instance whose parts work is ready, without notes", async () => {
    assert.deepEqual(await readinessOf({}).look(false), { isReady: true, notes: [] });
    assert.deepEqual(await readinessOf({}).look(true), { isReady: true, notes: [] });
  });

  it("without its database it is ready and says so, except for who needs the database", async () => {
    const state = await readinessOf({ ping: away }).look(false);
    assert.ok(state.isReady);
    assert.match(state.notes.join("\n"), /^degraded: the database does not answer: /);
    assert.deepEqual(await readinessOf({ ping: away }).look(true), {
      isReady: false,
      reason: "the database does not answer",
    });
  });

  it("a full queue turns clients away only while the database is there", async () => {
    let asked = 0;
    const isTurningAway = async (): Promise<boolean> => ++asked > 0;
    const full = await readinessOf({ isTurningAway }).look(false);
    assert.deepEqual(full, { isReady: false, reason: "its queue of large responses is full" });
    assert.equal((await readinessOf({ ping: away, isTurningAway }).look(false)).isReady, true);
    assert.equal(asked, 1);
  });

  it("an instance that stops is not ready, with its database or without", async () => {
    const state = await readinessOf({ isStopping: true, ping: away }).look(false);
    assert.deepEqual(state, { isReady: false, reason: "the service is stopping" });
  });

  it("probes of a database that hangs end in time, and share one ping", async () => {
    const hanging = Promise.withResolvers<void>();
    let pings = 0;
    const readiness = readinessOf({
      ping: async () => {
        pings++;
        await hanging.promise;
      },
    });
    const states = await Promise.all([1, 2, 3].map(async () => readiness.look(false)));
    for (const state of states) assert.ok(state.isReady && state.notes.length === 1);
    assert.equal(pings, 1);
    hanging.resolve();
    assert.deepEqual(await readiness.look(false), { isReady: true, notes: [] });
  });
});

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { systemClock } from "@devplat/base";
import { tempFolder } from "@devplat/testkit";
import { Health, type HealthOptions } from "./health.ts";
import { Activity } from "./telemetry/activity.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

async function states(options: Partial<HealthOptions>): Promise<Record<string, string>> {
  const items = await healthOf(options).look();
  return Object.fromEntries(items.map(({ name, state }) => [name, state]));
}

function healthOf(options: Partial<HealthOptions>): Health {
  return new Health({
    activity: new Activity(systemClock),
    ping: async () => undefined,
    cacheFolder: undefined,
    bucket: undefined,
    differences: () => ({ settings: [], keyIds: [] }),
    certificateEnd: () => undefined,
    codeHost: "code.example",
    clock: systemClock,
    ...options,
  });
}

function asked(status: number): Activity {
  const activity = new Activity(systemClock);
  activity.upstream(status);
  return activity;
}

describe("health", () => {
  it("says what is not known yet, and names no certificate where there is none", async () => {
    assert.deepEqual(await states({}), {
      Database: "good",
      "Code host code.example": "idle",
      Cache: "warn",
    });
  });

  it("a database that does not answer is bad", async () => {
    const found = await states({ ping: async () => Promise.reject(new Error("gone")) });
    assert.equal(found["Database"], "bad");
  });

  it("the code host is as its last response was", async () => {
    for (const [status, state] of [
      [200, "good"],
      [404, "good"],
      [503, "warn"],
      [0, "bad"],
    ] as const) {
      assert.equal((await states({ activity: asked(status) }))["Code host code.example"], state);
    }
  });

  it("the cache's folder is looked at", async () => {
    const folder = await tempFolder("health");
    assert.ok(["good", "warn"].includes((await states({ cacheFolder: folder.path }))["Cache"] ?? ""));
    assert.equal((await states({ cacheFolder: join(folder.path, "none") }))["Cache"], "bad");
    await folder.remove();
  });

  it("a certificate that ends soon is worth a warning, one that is over is bad", async () => {
    for (const [days, state] of [
      [100, "good"],
      [3, "warn"],
      [-1, "bad"],
    ] as const) {
      const certificateEnd = (): Date => new Date(Date.now() + days * DAY_MS);
      assert.equal((await states({ certificateEnd }))["Certificate"], state);
    }
  });

  it("instances with other settings are a warning that names them and what to do", async () => {
    const settings = ["cache.object_bucket", "cache.object_key"];
    const options = { differences: () => ({ settings, keyIds: ["0123456789abcdef"] }) };
    assert.equal((await states(options))["Other instances"], "warn");
    const [note] = healthOf(options).notes();
    assert.match(
      note ?? "",
      /^instances: others .* another cache\.object_bucket, cache\.object_key: set the same on all of them$/,
    );
    assert.doesNotMatch(note ?? "", /0123/);
    assert.equal((await states({}))["Other instances"], undefined);
  });
});

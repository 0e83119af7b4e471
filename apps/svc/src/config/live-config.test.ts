import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LiveConfig } from "./live-config.ts";
import { configSchema, type Config } from "./schema.ts";

const config = (given: unknown): Config => configSchema.parse(given);

describe("LiveConfig", () => {
  it("applies live keys, and names those that need a restart without taking them over", () => {
    const live = new LiveConfig(config({ admins: ["ada"], cache: { enabled: false } }));
    const seen: Config[] = [];
    live.subscribe((next) => seen.push(next));
    const change = live.adopt(
      config({ admins: ["bob"], cache: { enabled: true }, log: { level: "debug" }, data_dir: "elsewhere" }),
    );
    assert.deepEqual(change.applied, ["admins", "log.level"]);
    assert.deepEqual(change.needRestart, ["cache.enabled", "data_dir"]);
    assert.deepEqual(live.current.admins, ["bob"]);
    assert.equal(live.current.log.level, "debug");
    assert.equal(live.current.cache.enabled, false);
    assert.equal(live.current.data_dir, "data");
    assert.deepEqual(seen, [live.current]);
  });

  it("an unchanged file changes nothing; a changed secret is named without its value", () => {
    const before = { encryption: { key: "0".repeat(64) } };
    const live = new LiveConfig(config(before));
    assert.deepEqual(live.adopt(config(before)), { applied: [], needRestart: [] });
    assert.deepEqual(live.adopt(config({ encryption: { key: "1".repeat(64) } })), {
      applied: [],
      needRestart: ["encryption.key"],
    });
  });

  it("when a subscriber refuses, all of them are back at the configuration before", () => {
    const live = new LiveConfig(config({ admins: ["ada"] }));
    let admins: readonly string[] = ["ada"];
    live.subscribe((next) => (admins = next.admins));
    live.subscribe((next) => {
      if (next.admins.includes("mallory")) throw new Error("refused");
    });
    assert.throws(() => live.adopt(config({ admins: ["mallory"] })), /refused/);
    assert.deepEqual(admins, ["ada"]);
    assert.deepEqual(live.current.admins, ["ada"]);
  });
});

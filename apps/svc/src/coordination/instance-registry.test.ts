import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createLogger, silentLogger, systemClock, type Clock } from "@devplat/base";
import { until } from "@devplat/testkit";
import { configSchema } from "../config/schema.ts";
import { memoryStore } from "../storage/memory.test-kit.ts";
import type { Store } from "../storage/store.ts";
import { InstanceRegistry } from "./instance-registry.ts";
import { settingsDigests } from "./shared-settings.ts";

/** A clock whose pauses are short, and on which time passes with them. */
class HastyClock implements Clock {
  #ms = 0;

  now = (): number => this.#ms;
  monotonic = (): number => this.#ms;

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.#ms += ms;
    await systemClock.sleep(1, signal);
  }
}

const RECORD = {
  hostName: "h",
  address: "h:1",
  version: "1",
  manifestKeyId: undefined,
  settingsDigests: undefined,
};

describe("InstanceRegistry", () => {
  let store: Store;
  let stop: AbortController;
  beforeEach(async () => {
    store = await memoryStore();
    stop = new AbortController();
    lines.length = 0;
  });
  afterEach(async () => {
    stop.abort();
    await store.close();
  });

  const lines: string[] = [];
  const logger = createLogger({ format: "json", destination: { write: (line) => void lines.push(line) } });
  const digests = settingsDigests(configSchema.parse({ cache: { enabled: true, object_bucket: "bucket" } }));
  const registry = (id: string, isReady = (): boolean => true, figures = async () => "{}") =>
    new InstanceRegistry({
      store: store.instances,
      instance: {
        id,
        hostName: `host of ${id}`,
        version: "1.0.0",
        manifestKeyId: `key of ${id}`,
        settingsDigests: digests,
      },
      address: () => `${id}:8080`,
      isReady,
      figures,
      clock: new HastyClock(),
      logger,
    });

  it("an instance reports while it runs, and takes itself off the list", async () => {
    let stored = 0;
    const here = registry("a", undefined, async () => `{"stored":${++stored}}`);
    const running = here.run(stop.signal);
    // Every minute of its clock, not with each report.
    await until(async () => (await here.list())[0]?.figures === '{"stored":3}');
    const [listed] = await here.list();
    assert.equal(listed?.hostName, "host of a");
    assert.equal(listed.address, "a:8080");
    stop.abort();
    await running;
    assert.deepEqual(await here.list(), []);
  });

  it("another one counts as ready by its own report, and this one does not count", async () => {
    const [here, there] = [registry("a"), registry("b")];
    let isReady = true;
    const report = async (): Promise<void> => {
      for (const { id } of [here, there]) await store.instances.report(recordOf(id));
    };
    const recordOf = (id: string) => ({
      ...RECORD,
      id,
      ready: id === "a" || isReady,
    });
    await store.instances.report(recordOf("a"));
    assert.equal(await here.isAnotherReady(), false);
    await report();
    assert.equal(await here.isAnotherReady(), true);
    isReady = false;
    await report();
    assert.equal(await here.isAnotherReady(), false);
    assert.equal(await there.isAnotherReady(), true);
  });

  it("a report that is older than 10 seconds does not count", async () => {
    const silent = { ...(await listedOf("b")), reportAgeMs: 10_001 };
    const recent = { ...silent, reportAgeMs: 10_000 };
    for (const [each, expected] of [
      [silent, false],
      [recent, true],
    ] as const) {
      const here = new InstanceRegistry({
        store: { ...store.instances, list: async () => [each] },
        instance: {
          id: "a",
          hostName: "h",
          version: "1",
          manifestKeyId: undefined,
          settingsDigests: undefined,
        },
        address: () => undefined,
        isReady: () => true,
        figures: async () => "{}",
        clock: systemClock,
        logger: silentLogger,
      });
      assert.equal(await here.isAnotherReady(), expected);
      assert.equal((await here.list())[0]?.ready, expected);
    }
  });

  it("names the keys of other ready instances for the bucket, as long as they differ", async () => {
    const here = registry("a");
    await store.instances.report({ ...RECORD, id: "b", manifestKeyId: "key of b", ready: true });
    await store.instances.report({ ...RECORD, id: "c", manifestKeyId: "key of c", ready: false });
    await store.instances.report({ ...RECORD, id: "d", ready: true });
    assert.deepEqual(here.differences, { settings: [], keyIds: [] });
    const running = here.run(stop.signal);
    await until(() => here.differences.keyIds.length > 0);
    assert.deepEqual(here.differences, { settings: ["cache.object_key"], keyIds: ["key of b"] });
    await store.instances.report({ ...RECORD, id: "b", manifestKeyId: "key of a", ready: true });
    await until(() => here.differences.keyIds.length === 0);
    stop.abort();
    await running;
  });

  it("names the settings in which another ready instance differs, and logs them once", async () => {
    const here = registry("a");
    const other = configSchema.parse({
      cache: { enabled: true, object_bucket: "bucket", storage_path: "planted-prefix" },
    });
    const record = { ...RECORD, id: "b", settingsDigests: settingsDigests(other), ready: true };
    await store.instances.report(record);
    const running = here.run(stop.signal);
    await until(() => here.differences.settings.length > 0);
    assert.deepEqual(here.differences.settings, ["cache.storage_path"]);
    let compared = 0;
    const list = store.instances.list.bind(store.instances);
    store.instances.list = async () => {
      compared++;
      return list();
    };
    await until(() => compared > 2);
    const told = lines.filter((line) => line.includes("have other settings"));
    assert.equal(told.length, 1);
    assert.match(told[0]!, /"settings":\["cache.storage_path"\],"instances":\["h:1"\]/);
    assert.doesNotMatch(told[0]!, /planted/);
    await store.instances.report({ ...record, settingsDigests: digests });
    await until(() => here.differences.settings.length === 0);
    stop.abort();
    await running;
  });

  it("a database that is away stops nothing, and the report comes after it", async () => {
    let isAway = true;
    const failing = {
      ...store.instances,
      report: async (record: Parameters<typeof store.instances.report>[0]) => {
        if (isAway) throw new Error("away");
        await store.instances.report(record);
      },
    };
    const here = new InstanceRegistry({
      store: failing,
      instance: {
        id: "a",
        hostName: "h",
        version: "1",
        manifestKeyId: undefined,
        settingsDigests: undefined,
      },
      address: () => undefined,
      isReady: () => true,
      figures: async () => "{}",
      clock: new HastyClock(),
      logger: silentLogger,
    });
    const running = here.run(stop.signal);
    await systemClock.sleep(20);
    isAway = false;
    await until(async () => (await here.list()).length === 1);
    stop.abort();
    await running;
  });

  async function listedOf(id: string) {
    await store.instances.report({ ...RECORD, id, ready: true });
    const [listed] = await store.instances.list();
    assert.ok(listed);
    return listed;
  }
});

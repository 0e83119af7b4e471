import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BoundedMap } from "./bounded-map.ts";

const TTL_MS = 1000;

function timed(options: { onRemove?: (key: string, value: number) => void } = {}): {
  map: BoundedMap<string, number>;
  at: (ms: number) => void;
} {
  let now = 0;
  const map = new BoundedMap<string, number>({ max: 10, ttlMs: TTL_MS, now: () => now, ...options });
  return { map, at: (ms) => (now = ms) };
}

function keysOf(map: BoundedMap<string, number>): string[] {
  return map.entries().map(([key]) => key);
}

describe("BoundedMap", () => {
  it("evicts the least recently used entry", () => {
    const map = new BoundedMap<string, number>({ max: 2 });
    map.set("a", 1);
    map.set("b", 2);
    assert.equal(map.get("a"), 1);
    map.set("c", 3);
    assert.deepEqual(keysOf(map), ["c", "a"]);
    map.set("a", 4);
    map.set("d", 5);
    assert.deepEqual([...map.values()], [5, 4]);
    assert.equal(map.size, 2);
  });

  it("reading with peek does not change the order", () => {
    const map = new BoundedMap<string, number>({ max: 2 });
    map.set("a", 1);
    map.set("b", 2);
    assert.equal(map.peek("a"), 1);
    map.set("c", 3);
    assert.deepEqual(keysOf(map), ["c", "b"]);
  });

  it("counts by sizeOf, and does not keep a value larger than the maximum", () => {
    const map = new BoundedMap<string, number>({ max: 10, sizeOf: (value) => value });
    map.set("a", 4);
    map.set("b", 6);
    assert.equal(map.totalSize, 10);
    map.set("c", 5);
    assert.deepEqual(keysOf(map), ["c"]);
    map.set("d", 11);
    assert.deepEqual(keysOf(map), ["c"]);
    map.set("c", 11);
    assert.equal(map.size, 0);
    assert.equal(map.totalSize, 0);
  });

  it("an entry is gone when its lifetime has passed, at a time of 0 too", () => {
    const { map, at } = timed();
    map.set("a", 1);
    at(TTL_MS - 1);
    assert.equal(map.get("a"), 1);
    assert.equal(map.peek("a"), 1);
    at(TTL_MS);
    assert.equal(map.peek("a"), undefined);
    assert.deepEqual(keysOf(map), []);
    assert.equal(map.size, 1);
    assert.equal(map.get("a"), undefined);
    assert.equal(map.size, 0);
  });

  it("reading does not lengthen a lifetime, setting again does", () => {
    const { map, at } = timed();
    map.set("a", 1);
    at(TTL_MS - 1);
    map.get("a");
    at(TTL_MS);
    assert.equal(map.get("a"), undefined);
    map.set("a", 2);
    at(TTL_MS + TTL_MS - 1);
    assert.equal(map.get("a"), 2);
  });

  it("an entry can have its own lifetime, also one that began earlier", () => {
    const { map, at } = timed();
    at(500);
    map.set("own", 1, { ttlMs: 10 });
    map.set("earlier", 2, { since: 0 });
    at(510);
    assert.equal(map.get("own"), undefined);
    at(TTL_MS - 1);
    assert.equal(map.get("earlier"), 2);
    at(TTL_MS);
    assert.equal(map.get("earlier"), undefined);
  });

  it("a lifetime of 0 keeps neither the entry nor the one before it", () => {
    const { map } = timed();
    for (const ttlMs of [0, -1]) {
      map.set("a", 1);
      map.set("a", 2, { ttlMs });
      assert.equal(map.size, 0);
    }
  });

  it("entries expire by the system clock when no other is given", async () => {
    const map = new BoundedMap<string, number>({ max: 2, ttlMs: 5 });
    map.set("short", 1);
    map.set("long", 2, { ttlMs: 3_600_000 });
    await new Promise((resolve) => setTimeout(resolve, 10));
    assert.deepEqual(keysOf(map), ["long"]);
  });

  it("without a lifetime entries stay at any time of the clock", () => {
    let now = 0;
    const map = new BoundedMap<string, number>({ max: 2, now: () => now });
    map.set("a", 1);
    now = 1e12;
    assert.equal(map.get("a"), 1);
  });

  it("onRemove gets evicted, deleted and expired entries, not replaced values", () => {
    const removed: string[] = [];
    const onRemove = (key: string, value: number): void => void removed.push(`${key}${value}`);
    const small = new BoundedMap<string, number>({ max: 1, onRemove });
    small.set("a", 1);
    small.set("a", 2);
    small.set("b", 3);
    assert.equal(small.delete("b"), true);
    assert.equal(small.delete("b"), false);
    small.set("c", 4);
    small.clear();
    const { map, at } = timed({ onRemove });
    map.set("d", 5);
    map.set("e", 6);
    at(TTL_MS);
    map.get("d");
    map.purge();
    assert.deepEqual(removed, ["a2", "b3", "c4", "d5", "e6"]);
  });

  it("onRemove may change the map", () => {
    const map: BoundedMap<string, number> = new BoundedMap({
      max: 2,
      onRemove: (key) => void (key === "a" && map.delete("b")),
    });
    map.set("a", 1);
    map.set("b", 2);
    map.set("c", 3);
    assert.deepEqual(keysOf(map), ["c"]);
  });
});

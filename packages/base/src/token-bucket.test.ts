import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { TokenBucket, type TokenBucketOptions } from "./token-bucket.ts";

function bucketOf(options: Partial<TokenBucketOptions> = {}): {
  bucket: TokenBucket;
  at: (ms: number) => void;
} {
  let now = 0;
  const clock = { monotonic: () => now };
  return {
    bucket: new TokenBucket({ capacity: 2, refillMs: 10_000, clock, ...options }),
    at: (ms) => (now = ms),
  };
}

describe("TokenBucket", () => {
  it("gives its capacity, then returns the seconds until the next token", () => {
    const { bucket, at } = bucketOf();
    assert.deepEqual([bucket.take("a"), bucket.take("a"), bucket.take("a")], [0, 0, 5]);
    at(4001);
    assert.equal(bucket.take("a"), 1);
    at(5000);
    assert.deepEqual([bucket.take("a"), bucket.take("a")], [0, 5]);
  });

  it("refills evenly, up to its capacity", () => {
    const { bucket, at } = bucketOf();
    bucket.take("a");
    bucket.take("a");
    at(1_000_000);
    assert.deepEqual([bucket.take("a"), bucket.take("a"), bucket.take("a")], [0, 0, 5]);
  });

  it("each key has its own bucket", () => {
    const { bucket } = bucketOf({ capacity: 1 });
    assert.deepEqual([bucket.take("a"), bucket.take("a"), bucket.take("b")], [0, 10, 0]);
  });

  it("a key can get its own capacity, which counts from then on", () => {
    const { bucket, at } = bucketOf();
    assert.deepEqual(
      [1, 2, 3, 4].map(() => bucket.take("a", 3)),
      [0, 0, 0, 4],
    );
    at(10_000);
    assert.deepEqual([bucket.take("a", 1), bucket.take("a", 1)], [0, 10]);
  });

  it("a returned token can be taken again", () => {
    const { bucket } = bucketOf({ capacity: 1 });
    bucket.take("a");
    bucket.giveBack("a");
    bucket.giveBack("unknown");
    assert.deepEqual([bucket.take("a"), bucket.take("a")], [0, 10]);
    assert.deepEqual([bucket.take("unknown"), bucket.take("unknown")], [0, 10]);
  });

  it("evicts the least recently used key", () => {
    const { bucket } = bucketOf({ capacity: 1, maxKeys: 2 });
    for (const key of ["a", "b", "a", "c"]) bucket.take(key);
    assert.deepEqual(
      ["a", "b"].map((key) => bucket.take(key)),
      [10, 0],
    );
  });
});

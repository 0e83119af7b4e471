import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { ObjectStoreError } from "@devplat/object-store";
import { FakeBucket } from "../fake-bucket.test-kit.ts";
import { HOST_URL, REPOSITORY } from "../manifest/manifest.test-kit.ts";
import { ObjectNames } from "../object-names.ts";
import { decodeLease } from "./bucket-lease.ts";
import { BucketMaintainer, GONE_AFTER_MS } from "./bucket-maintainer.ts";

const names = new ObjectNames({ prefix: "", hostUrl: HOST_URL, hideKey: undefined });

/** Instances whose clocks have nothing to do with each other. */
function testLeases() {
  const bucket = new FakeBucket();
  const open = (instance: string, fence = 0) => {
    const state = { time: Math.floor(instance.charCodeAt(0) * 1e6), isGone: false, written: fence };
    const clock: Clock = {
      now: () => state.time,
      monotonic: () => state.time,
      sleep: () => Promise.resolve(),
    };
    const store = bucket.client({ readFault: () => state.isGone });
    const manifests = { known: () => ({ fence: state.written }) as never };
    const maintainer = new BucketMaintainer({ store, names, manifests, instance, clock });
    return { state, may: async () => maintainer.mayMaintain(REPOSITORY), maintainer };
  };
  return { bucket, open };
}

describe("BucketMaintainer", () => {
  it("the first instance gets the lease, and keeps it while it renews it", async () => {
    const { open } = testLeases();
    const [a, b] = [open("a"), open("b")];
    assert.equal(await a.may(), 1);
    for (let round = 0; round < 10; round++) {
      assert.equal(await b.may(), undefined);
      a.state.time += 9000;
      b.state.time += 9000;
      assert.equal(await a.may(), 1);
    }
  });

  it("a holder that does not renew its lease loses it, and gets no higher number", async () => {
    const { open } = testLeases();
    const [a, b] = [open("a"), open("b")];
    await a.may();
    assert.equal(await b.may(), undefined);
    b.state.time += GONE_AFTER_MS - 1;
    assert.equal(await b.may(), undefined);
    b.state.time += 1;
    assert.equal(await b.may(), 2);
    a.state.time += 9000;
    assert.equal(await a.may(), undefined, "it was paused");
  });

  it("a holder gets a higher number if a manifest has one that is higher than its own", async () => {
    const { open } = testLeases();
    const [a, b] = [open("a"), open("b")];
    assert.equal(await a.may(), 1);
    a.state.written = 1_700_000_000_000;
    assert.equal(await a.may(), 1_700_000_000_001);
    assert.equal(await b.may(), undefined);
    a.state.time += 9000;
    assert.equal(await a.may(), 1_700_000_000_001);
  });

  it("of instances that take a free lease at the same time, one gets it", async () => {
    const { open } = testLeases();
    const all = ["a", "b", "c", "d"].map((name) => open(name));
    const fences = await Promise.all(all.map(async ({ may }) => may()));
    assert.deepEqual(
      fences.filter((fence) => fence !== undefined),
      [1],
    );
  });

  it("an instance that stops gives its leases back", async () => {
    const { open } = testLeases();
    const [a, b] = [open("a"), open("b")];
    await a.may();
    await a.maintainer.run(AbortSignal.abort());
    const stopping = new AbortController();
    const running = a.maintainer.run(stopping.signal);
    stopping.abort();
    await running;
    assert.equal(await b.may(), 2);
  });

  it("the number is higher than that of the manifest, also if the lease object is gone", async () => {
    const { open, bucket } = testLeases();
    assert.equal(await open("a", 7).may(), 8);
    bucket.versions.clear();
    assert.equal(await open("b", 8).may(), 9);
  });

  it("a store without a response is an error, a damaged lease is taken later", async () => {
    const { open, bucket } = testLeases();
    const a = open("a");
    a.state.isGone = true;
    await assert.rejects(a.may(), ObjectStoreError);
    a.state.isGone = false;
    bucket.put(names.object(REPOSITORY, "maintainer.json"), Buffer.from("{"));
    assert.equal(await a.may(), undefined);
    a.state.time += GONE_AFTER_MS;
    assert.equal(await a.may(), 1);
    for (const text of ["", "null", "[]", '{"fence":-1}', '{"fence":1e99}', '{"holder":3}']) {
      assert.ok(decodeLease(Buffer.from(text)).fence === 0, text);
    }
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { until } from "@devplat/testkit";
import { FakeBucket } from "../fake-bucket.test-kit.ts";
import { REPOSITORY as id, adding, openManifests, someResponse } from "./manifest.test-kit.ts";

describe("BucketManifestStore with an epoch of the database", () => {
  it("does not use a known manifest of a lower epoch, and begins the next one empty", async () => {
    const bucket = new FakeBucket();
    const { manifests, epochs } = openManifests(bucket.client());
    const old = someResponse();
    await manifests.update(id, { epoch: 0 }, adding(old));
    assert.equal(manifests.known(id)?.generation, 1);
    await epochs.adopt(id, 2);
    const { get } = bucket.counts;
    assert.equal(manifests.known(id), undefined);
    assert.equal(bucket.counts.get, get);
    assert.equal(await manifests.current(id), undefined);
    const response = someResponse();
    const written = await manifests.update(id, { epoch: 2 }, adding(response));
    assert.deepEqual([written?.generation, written?.epoch], [2, 2]);
    assert.deepEqual(written?.responses, [response]);
    assert.deepEqual(
      written?.tombstones.map(({ name }) => name),
      [old.object.name],
    );
  });

  it("keeps what it wrote while an older response was on its way", async () => {
    const bucket = new FakeBucket();
    const writer = openManifests(bucket.client()).manifests;
    await writer.update(id, { epoch: 0 }, adding(someResponse()));
    const steps: (() => void)[] = [];
    let held = false;
    const turn = async (): Promise<void> =>
      held ? new Promise((resolve) => void steps.push(resolve)) : Promise.resolve();
    const one = openManifests(bucket.client({ turn }), { writer: "w2" });
    await one.manifests.current(id);
    await writer.update(id, { epoch: 0 }, adding(someResponse()));
    held = true;
    const read = one.manifests.current(id);
    // The store reads the second generation now. Its response waits for the second step.
    steps.shift()?.();
    await until(() => steps.length === 1);
    held = false;
    const written = await one.manifests.update(id, { epoch: 0 }, adding(someResponse()));
    assert.equal(written?.generation, 3);
    steps.shift()?.();
    assert.deepEqual(await read, written);
    assert.deepEqual(one.manifests.known(id), written);
    assert.deepEqual(one.refused, []);
  });
});

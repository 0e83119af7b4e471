import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManifestKeys, keyFromEncryptionKey } from "../cache/object-tier/manifest/manifest-keys.ts";
import { configSchema } from "../config/schema.ts";
import { memoryStore } from "../storage/memory.test-kit.ts";
import type { OneTimeStore } from "../storage/store.ts";
import { objectKeys } from "./object-keys.ts";

const [A, B, C] = ["a1", "b2", "c3"].map((digits) => digits.repeat(32)) as [string, string, string];

describe("objectKeys", () => {
  const keysOf = async (given: object, oneTime?: OneTimeStore): Promise<ManifestKeys> =>
    objectKeys(configSchema.parse(given), oneTime ?? (await memoryStore()).oneTime);
  /** Whether a manifest that is written with one is read with the other. */
  const reads = (reader: ManifestKeys, writer: ManifestKeys): boolean =>
    reader.verify(writer.currentId, writer.sign(["x"]), ["x"]) === true;

  it("takes the configured key, else one that is derived from the encryption key", async () => {
    const configured = await keysOf({ cache: { object_key: A }, encryption: { key: B } });
    const derived = await keysOf({ encryption: { key: B } });
    assert.equal(
      configured.currentId,
      new ManifestKeys(configSchema.parse({ encryption: { key: A } }).encryption.key!).currentId,
    );
    assert.notEqual(derived.currentId, configured.currentId);
    const { key } = configSchema.parse({ encryption: { key: B } }).encryption;
    assert.equal(derived.currentId, new ManifestKeys(keyFromEncryptionKey(key!)).currentId);
    // The derived key says nothing about the encryption key.
    assert.notEqual(keyFromEncryptionKey(key!).reveal(), B);
  });

  it("reads manifests of earlier keys, in each way to change the key", async () => {
    const old = await keysOf({ cache: { object_key: A }, encryption: { key: C } });
    const rotated = await keysOf({
      cache: { object_key: B, object_key_previous: A },
      encryption: { key: C },
    });
    assert.deepEqual([reads(rotated, old), reads(old, rotated)], [true, false]);
    const derived = await keysOf({ encryption: { key: C } });
    assert.ok(reads(old, derived), "from a derived key to a configured one");
    const rekeyed = await keysOf({ encryption: { key: B, key_previous: C } });
    assert.ok(reads(rekeyed, derived), "after a rotation of the encryption key");
  });

  it("is refused without any key, and with a previous key alone", async () => {
    for (const cache of [{}, { object_key_previous: A }])
      await assert.rejects(keysOf({ cache }), { code: "config_refused" });
  });

  it("is made once where the database encrypts by itself", async () => {
    const { oneTime } = await memoryStore();
    const database = { driver: "vault" };
    const [one, other] = await Promise.all([keysOf({ database }, oneTime), keysOf({ database }, oneTime)]);
    assert.equal(one.currentId, other.currentId);
    assert.notEqual((await keysOf({ database })).currentId, one.currentId);
    await oneTime.deleteExpired(Date.now());
    assert.equal((await keysOf({ database }, oneTime)).currentId, one.currentId);
  });
});

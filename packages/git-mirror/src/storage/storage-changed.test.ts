import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { StorageChanged, retryOnChange } from "./storage-changed.ts";

const gone = Object.assign(new Error("gone"), { code: "ENOENT" });

describe("retryOnChange", () => {
  it("reads again when a pack disappeared before it was opened", async () => {
    let looks = 0;
    const found = await retryOnChange(() => (++looks < 3 ? Promise.reject(gone) : Promise.resolve("found")));
    assert.equal(found, "found");
    assert.equal(looks, 3);
  });

  it("gives up after some tries, and immediately after any other error", async () => {
    let tries = 0;
    const count = (error: Error) => (): Promise<never> => {
      tries++;
      return Promise.reject(error);
    };
    await assert.rejects(retryOnChange(count(gone)), gone);
    assert.equal(tries, 5);
    const other = new Error("other");
    await assert.rejects(retryOnChange(count(other)), other);
    assert.equal(tries, 6);
    await assert.rejects(retryOnChange(count(new StorageChanged(other))), other);
    assert.equal(tries, 11);
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { StoreChanged, despiteReplacement } from "./pack-race.ts";

const gone = Object.assign(new Error("gone"), { code: "ENOENT" });

describe("despiteReplacement", () => {
  it("looks again when a pack went while it was opened", async () => {
    let looks = 0;
    const found = await despiteReplacement(() =>
      ++looks < 3 ? Promise.reject(gone) : Promise.resolve("found"),
    );
    assert.equal(found, "found");
    assert.equal(looks, 3);
  });

  it("gives up in the end, and at once for any other error", async () => {
    let tries = 0;
    const count = (error: Error) => (): Promise<never> => {
      tries++;
      return Promise.reject(error);
    };
    await assert.rejects(despiteReplacement(count(gone)), gone);
    assert.equal(tries, 5);
    const other = new Error("other");
    await assert.rejects(despiteReplacement(count(other)), other);
    assert.equal(tries, 6);
    await assert.rejects(despiteReplacement(count(new StoreChanged(other))), other);
    assert.equal(tries, 11);
  });
});

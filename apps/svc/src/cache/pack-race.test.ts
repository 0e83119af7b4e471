import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { despiteReplacement } from "./pack-race.ts";

const gone = Object.assign(new Error("gone"), { code: "ENOENT" });

describe("despiteReplacement", () => {
  it("looks again when a pack went while it was opened", async () => {
    const looks: boolean[] = [];
    const found = await despiteReplacement((again) => {
      looks.push(again);
      return looks.length < 3 ? Promise.reject(gone) : Promise.resolve("found");
    });
    assert.equal(found, "found");
    assert.deepEqual(looks, [false, true, true]);
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
  });
});

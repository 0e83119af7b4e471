import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sentence } from "./sentence.ts";

describe("sentence", () => {
  it("makes the first letter a capital and adds a full stop", () => {
    assert.equal(sentence("the store is down"), "The store is down.");
  });

  it("does not change a complete sentence", () => {
    for (const text of ["The store is down.", "Again?", "Éteint !"]) assert.equal(sentence(text), text);
  });
});

import assert from "node:assert/strict";
import { it } from "node:test";
import { nameList } from "./name-list.ts";

it("a list of names is sorted and shows a maximum of ten names", () => {
  assert.equal(nameList(["b", "a"]), "a, b");
  const many = Array.from({ length: 12 }, (_, index) => `f${String(index).padStart(2, "0")}`).toReversed();
  assert.equal(nameList(many), "f00, f01, f02, f03, f04, f05, f06, f07, f08, f09 and 2 more");
});

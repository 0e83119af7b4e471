import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { memberOf, numberOf, textOf } from "./json-member.ts";

describe("members of JSON of unknown shape", () => {
  const value: unknown = JSON.parse(
    '{"name": "ada", "empty": "", "count": 0, "none": null, "list": [{"id": 7}], "inner": {"name": "bob"}}',
  );

  it("memberOf follows a path through objects and arrays", () => {
    assert.equal(memberOf(value), value);
    assert.equal(memberOf(value, "none"), null);
    assert.equal(memberOf(value, "inner", "name"), "bob");
    assert.equal(memberOf(value, "list", 0, "id"), 7);
  });

  it("memberOf is undefined where a member on the path is missing or inherited", () => {
    for (const path of [["no"], ["none", "x"], ["name", "x"], ["list", 1], ["constructor"], ["__proto__"]]) {
      assert.equal(memberOf(value, ...path), undefined, path.join("."));
    }
    for (const other of [undefined, null, "text", 1, true])
      assert.equal(memberOf(other, "length"), undefined);
  });

  it("textOf gives strings that are not empty", () => {
    assert.equal(textOf(value, "name"), "ada");
    assert.equal(textOf(value, "inner", "name"), "bob");
    for (const name of ["empty", "count", "none", "list", "no"]) assert.equal(textOf(value, name), undefined);
  });

  it("numberOf gives finite numbers", () => {
    assert.equal(numberOf(value, "count"), 0);
    assert.equal(numberOf(value, "list", 0, "id"), 7);
    assert.equal(numberOf({ huge: Infinity }, "huge"), undefined);
    for (const name of ["name", "none", "no"]) assert.equal(numberOf(value, name), undefined);
  });
});

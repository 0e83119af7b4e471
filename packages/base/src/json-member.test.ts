import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { jsonMember, numberMember, stringMember } from "./json-member.ts";

describe("members of JSON of unknown shape", () => {
  const value: unknown = JSON.parse(
    '{"name": "ada", "empty": "", "count": 0, "none": null, "list": [{"id": 7}], "inner": {"name": "bob"}}',
  );

  it("jsonMember follows a path through objects and arrays", () => {
    assert.equal(jsonMember(value), value);
    assert.equal(jsonMember(value, "none"), null);
    assert.equal(jsonMember(value, "inner", "name"), "bob");
    assert.equal(jsonMember(value, "list", 0, "id"), 7);
  });

  it("jsonMember is undefined where a member on the path is missing or inherited", () => {
    for (const path of [["no"], ["none", "x"], ["name", "x"], ["list", 1], ["constructor"], ["__proto__"]]) {
      assert.equal(jsonMember(value, ...path), undefined, path.join("."));
    }
    for (const other of [undefined, null, "text", 1, true])
      assert.equal(jsonMember(other, "length"), undefined);
  });

  it("stringMember gives strings that are not empty", () => {
    assert.equal(stringMember(value, "name"), "ada");
    assert.equal(stringMember(value, "inner", "name"), "bob");
    for (const name of ["empty", "count", "none", "list", "no"])
      assert.equal(stringMember(value, name), undefined);
  });

  it("numberMember gives finite numbers", () => {
    assert.equal(numberMember(value, "count"), 0);
    assert.equal(numberMember(value, "list", 0, "id"), 7);
    assert.equal(numberMember({ huge: Infinity }, "huge"), undefined);
    for (const name of ["name", "none", "no"]) assert.equal(numberMember(value, name), undefined);
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isStorable, repositoryId } from "./repository-id.ts";

describe("repositoryId", () => {
  it("only names that are safe as folders may be stored [svc 2.6]", () => {
    for (const [owner, name] of [
      ["a", "b"],
      ["A-1", "b.c_d"],
      ["o", ".github"],
    ] as const) {
      assert.equal(isStorable(repositoryId(owner, name)), true, owner);
    }
    for (const [owner, name] of [
      ["_responses", "b"],
      [".removed~", "b"],
      ["..", "b"],
      ["a/b", "c"],
      ["a", "b/c"],
      ["a", "."],
      ["a", ".."],
      ["a", "b c"],
      ["a".repeat(200), "b"],
    ] as const) {
      assert.equal(isStorable(repositoryId(owner, name)), false, owner);
    }
  });
});

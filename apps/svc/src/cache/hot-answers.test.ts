import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HotAnswers } from "./hot-answers.ts";

const MEGABYTE = 1024 * 1024;

describe("HotAnswers", () => {
  it("wants an answer from its second use on, and never a large one", () => {
    const hot = new HotAnswers();
    const small = { inode: 1, size: 10 };
    assert.equal(hot.wants("a", small), false);
    assert.equal(hot.wants("a", small), true);
    const large = { inode: 2, size: 17 * MEGABYTE };
    assert.equal(hot.wants("b", large), false);
    assert.equal(hot.wants("b", large), false);
  });

  it("gives the bytes of the same file only", () => {
    const hot = new HotAnswers();
    const bytes = Buffer.from("answer");
    hot.put("a", { inode: 1, size: 6 }, bytes);
    assert.equal(hot.get("a", { inode: 1, size: 6 }), bytes);
    assert.equal(hot.get("a", { inode: 2, size: 6 }), undefined);
    assert.equal(hot.get("a", { inode: 1, size: 6 }), undefined, "a replaced file's bytes are gone");
  });

  it("drops what was used longest ago when it is full", () => {
    const hot = new HotAnswers();
    const file = (inode: number) => ({ inode, size: 16 * MEGABYTE });
    for (const inode of [1, 2, 3]) hot.put(`f${inode}`, file(inode), Buffer.alloc(16 * MEGABYTE));
    assert.notEqual(hot.get("f1", file(1)), undefined);
    hot.put("f4", file(4), Buffer.alloc(16 * MEGABYTE));
    assert.equal(hot.get("f2", file(2)), undefined);
    for (const inode of [1, 3, 4]) assert.notEqual(hot.get(`f${inode}`, file(inode)), undefined);
  });
});

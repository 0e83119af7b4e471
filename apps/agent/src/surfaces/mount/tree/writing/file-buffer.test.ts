import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { FileError } from "../file-error.ts";
import { FileBuffer } from "./file-buffer.ts";
import { MemoryBudget } from "./memory-budget.ts";

const MAX = 64;

describe("bytes of a file that is written", () => {
  it("are those of a plain array, after any writes and changes of the size", () => {
    const action = fc.oneof(
      fc.record({ offset: fc.nat(80), data: fc.uint8Array({ maxLength: 20 }) }),
      fc.record({ size: fc.nat(80) }),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: MAX }), fc.array(action), (first, actions) => {
        const budget = new MemoryBudget(10_000);
        const buffer = new FileBuffer(Buffer.from(first), MAX, budget);
        let model = [...first];
        const resized = (size: number): number[] =>
          Array.from({ length: size }, (_, index) => model[index] ?? 0);
        for (const each of actions) {
          const end = "size" in each ? each.size : each.offset + each.data.length;
          const change = (): void =>
            "size" in each ? buffer.resize(each.size) : buffer.write(each.offset, Buffer.from(each.data));
          if (end > MAX) assert.throws(change, FileError);
          else {
            change();
            model = resized("size" in each ? end : Math.max(end, model.length));
            if (!("size" in each)) model.splice(each.offset, each.data.length, ...each.data);
          }
          assert.deepEqual([...buffer.copy()], model);
          assert.deepEqual([...buffer.read(3, 10)], model.slice(3, 13));
          assert.equal(budget.used, 256 + model.length);
        }
        buffer.release();
        buffer.release();
        assert.equal(budget.used, 0);
      }),
    );
  });

  it("are unchanged when the memory is full", () => {
    const budget = new MemoryBudget(300);
    const buffer = new FileBuffer(Buffer.from("abc"), 1000, budget);
    assert.throws(() => buffer.write(2, Buffer.alloc(50)), { message: "ENOSPC" });
    assert.equal(buffer.copy().toString(), "abc");
    assert.throws(() => new FileBuffer(Buffer.alloc(0), 10, budget), { message: "ENOSPC" });
    buffer.write(3, Buffer.from("d"));
    assert.equal(buffer.copy().toString(), "abcd");
  });
});

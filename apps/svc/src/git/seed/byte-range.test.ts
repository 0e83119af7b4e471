import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { requestedPart, type RequestedPart } from "./byte-range.ts";

const ETAG = '"abc"';
const SIZE = 100;
const of = (range: string, more: object = {}): RequestedPart => requestedPart({ range, ...more }, SIZE, ETAG);
const part = (start: number, end: number): RequestedPart => ({ kind: "part", start, end });

describe("requestedPart", () => {
  it("one range of bytes is a part", () => {
    assert.deepEqual(of("bytes=0-9"), part(0, 10));
    assert.deepEqual(of("bytes=90-"), part(90, 100));
    assert.deepEqual(of("bytes=-30"), part(70, 100));
    assert.deepEqual(of("bytes=-300"), part(0, 100));
    assert.deepEqual(of("bytes=50-5000"), part(50, 100));
    assert.deepEqual(of("Bytes= 1-1 "), part(1, 2));
  });

  it("a range beyond the end is unsatisfiable", () => {
    for (const text of ["bytes=100-", "bytes=100-200", "bytes=-0"]) {
      assert.deepEqual(of(text), { kind: "unsatisfiable" }, text);
    }
    assert.deepEqual(requestedPart({ range: "bytes=-5" }, 0, ETAG), { kind: "unsatisfiable" });
  });

  it("malformed ranges and several ranges are ignored", () => {
    const malformed = [
      "",
      "bytes",
      "bytes=",
      "bytes=-",
      "bytes=5-4",
      "bytes=a-b",
      "bytes=0-1,5-6",
      "lines=0-1",
    ];
    for (const text of [
      ...malformed,
      "bytes=0-1\n",
      "bytes=+1-2",
      "bytes=1-2-3",
      `bytes=${"9".repeat(16)}-`,
    ]) {
      assert.deepEqual(of(text), { kind: "whole" }, text);
    }
  });

  it("a range counts only for the file that If-Range names", () => {
    assert.deepEqual(of("bytes=0-9", { "if-range": ETAG }), part(0, 10));
    for (const other of ['"x"', `W/${ETAG}`, "Sat, 28 Nov 2026 10:00:00 GMT"]) {
      assert.deepEqual(of("bytes=0-9", { "if-range": other }), { kind: "whole" }, other);
    }
  });

  it("If-None-Match with the tag of the file is unchanged", () => {
    for (const known of [ETAG, "*", `W/${ETAG}`, `"x", ${ETAG}`]) {
      assert.deepEqual(of("bytes=0-9", { "if-none-match": known }), { kind: "unchanged" }, known);
    }
    assert.deepEqual(requestedPart({ "if-none-match": '"x"' }, SIZE, ETAG), { kind: "whole" });
  });

  it("a part is never empty and never beyond the file, for any text", () => {
    const range = fc.oneof(
      fc.string(),
      fc.tuple(fc.nat(), fc.nat()).map(([a, b]) => `bytes=${a}-${b}`),
      fc.nat().map((n) => `bytes=-${n}`),
    );
    fc.assert(
      fc.property(range, fc.nat(), (text, size) => {
        const found = requestedPart({ range: text }, size, ETAG);
        if (found.kind !== "part") return;
        assert.ok(found.start >= 0 && found.start < found.end && found.end <= size);
      }),
    );
  });
});

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { PktLineReader, lineText } from "./index.ts";
import { decodeObjectInfoRequest, encodeObjectSizes } from "./object-info.ts";

const oid = fc
  .uint8Array({ minLength: 20, maxLength: 20 })
  .map((bytes) => Buffer.from(bytes).toString("hex"));

test("an object-info request is decoded, in any order of its lines", () => {
  fc.assert(
    fc.property(fc.array(oid, { minLength: 1 }), fc.nat(), (oids, at) => {
      const lines = oids.map((each) => `oid ${each}`);
      lines.splice(at % (lines.length + 1), 0, "size");
      assert.deepEqual(decodeObjectInfoRequest(lines, "sha1"), { oids });
    }),
  );
  const one = `oid ${"1".repeat(40)}`;
  for (const lines of [[], ["size"], [one], ["size", one, "type"], ["size", "oid 11"], ["size", `${one} `]]) {
    assert.equal(decodeObjectInfoRequest(lines, "sha1"), undefined, JSON.stringify(lines));
  }
  assert.equal(decodeObjectInfoRequest(["size", one], "sha256"), undefined);
});

test("the sizes of objects are encoded as git does, without line feeds", () => {
  const reader = new PktLineReader();
  reader.push(encodeObjectSizes(["a".repeat(40), "b".repeat(40)], [0, 4_294_967_296]));
  const lines: string[] = [];
  for (let next = reader.next(); next.state === "complete"; next = reader.next()) {
    lines.push(next.line.kind === "data" ? lineText(next.line.payload) : next.line.kind);
  }
  assert.deepEqual(lines, ["size", `${"a".repeat(40)} 0`, `${"b".repeat(40)} 4294967296`, "flush"]);
});

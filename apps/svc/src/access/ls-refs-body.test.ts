import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LsRefsBodies, type LsRefsBody } from "./ls-refs-body.ts";

const line = (text: string): string => (text.length + 4).toString(16).padStart(4, "0") + text;
const MAIN = line(`${"a".repeat(40)} refs/heads/main\n`);
const DEV = line(`${"b".repeat(40)} refs/heads/dev\n`);

describe("bodies of ls-refs responses that arrive at the same time", () => {
  const begun = (count: number): LsRefsBody[] => {
    const bodies = new LsRefsBodies();
    return Array.from({ length: count }, () => bodies.begin("same"));
  };
  const push = (body: LsRefsBody, text: string): void => body.push(Buffer.from(text));

  it("one is whole only with its own flush-pkt, also if another has it", () => {
    const [first, second, third] = begun(3) as [LsRefsBody, LsRefsBody, LsRefsBody];
    push(first, `${MAIN}${DEV}0000`);
    assert.equal(first.isWhole, true);
    push(second, MAIN);
    push(third, `${MAIN}0000`);
    assert.deepEqual([second.isWhole, third.isWhole], [false, true]);
    push(second, `${DEV}00`);
    assert.equal(second.isWhole, false);
    push(second, "00");
    assert.equal(second.isWhole, true);
    assert.equal(second.bytes, first.bytes);
    assert.equal(String(third.bytes), `${MAIN}0000`);
  });

  for (const [what, end] of [
    ["an ERR packet", line("ERR no\n")],
    ["bytes after its flush-pkt", "0000x"],
    ["broken framing", "zzzz"],
  ] as const) {
    it(`${what} of one does not harm the others, and is found in each of them`, () => {
      const [bad, good, alike] = begun(3) as [LsRefsBody, LsRefsBody, LsRefsBody];
      push(bad, MAIN);
      push(bad, end);
      push(good, `${MAIN}0000`);
      push(alike, `${MAIN}${end}`);
      push(bad, "0000");
      push(alike, "0000");
      assert.deepEqual([bad.isWhole, good.isWhole, alike.isWhole], [false, true, false]);
      push(good, "0000");
      assert.equal(good.isWhole, false, "what follows the flush-pkt of a whole one");
    });
  }
});

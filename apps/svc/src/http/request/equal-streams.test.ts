import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { loopSeconds, testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { EqualStreams, type EqualStream } from "./equal-streams.ts";

/** Streams with the number of their bytes as what follows from them. */
const counted = (): EqualStreams<number> => new EqualStreams((bytes) => bytes.length);

function push(stream: EqualStream<number>, chunk: Buffer): void {
  const rest = stream.match(chunk);
  stream.append(rest, stream.size + rest.length);
}

describe("streams that are mostly equal", () => {
  it("equal ones give the same buffer, in whichever pieces they come", () => {
    const streams = counted();
    const [one, two] = [streams.begin("a"), streams.begin("a")];
    for (const piece of ["he", "llo ", "world"]) push(one, Buffer.from(piece));
    assert.equal(two.state, undefined, "another one has more");
    for (const piece of ["hello w", "orld"]) push(two, Buffer.from(piece));
    assert.equal(two.state, 11);
    assert.equal(String(two.bytes), "hello world");
    assert.equal(two.bytes, one.bytes);
  });

  it("one that differs keeps its own bytes, and so do the others", () => {
    const streams = counted();
    const [one, two, three] = [streams.begin("a"), streams.begin("a"), streams.begin("a")];
    push(one, Buffer.from("hello world"));
    push(two, Buffer.from("hello"));
    push(two, Buffer.from(" there, all"));
    push(three, Buffer.from("hello"));
    push(one, Buffer.from("!"));
    assert.deepEqual(
      [one, two, three].map(({ bytes }) => String(bytes)),
      ["hello world!", "hello there, all", "hello"],
    );
    assert.deepEqual([one.state, two.state, three.state], [12, 16, undefined]);
    const four = streams.begin("a");
    push(four, Buffer.from("hello there, all"));
    assert.equal(four.bytes, two.bytes, "it is compared with the latest");
  });

  it("bytes that were handed out stay as they are while others go on", () => {
    const streams = counted();
    const [one, two] = [streams.begin("a"), streams.begin("a")];
    push(one, Buffer.alloc(100_000, "a"));
    const { bytes } = one;
    push(two, Buffer.alloc(100_000, "a"));
    push(two, Buffer.alloc(1_000_000, "b"));
    assert.ok(bytes.equals(Buffer.alloc(100_000, "a")));
  });

  it("nothing is kept when all have left, also of those that left early or differed", () => {
    const streams = counted();
    const all = ["abc", "abd", "", "abc", "x"].map((text) => {
      const stream = streams.begin("a");
      push(stream, Buffer.from(text));
      return stream;
    });
    for (const stream of all) {
      stream.leave();
      stream.leave();
    }
    assert.equal(streams.names, 0);
    const again = streams.begin("a");
    push(again, Buffer.from("abc"));
    assert.equal(String(again.bytes), "abc");
  });

  it("any pieces of any streams, in any order, give each stream exactly its bytes", () => {
    const random = randomFrom(testSeed());
    const until = performance.now() + loopSeconds(0.003) * 1000;
    const below = (max: number): number => Math.floor(random() * max);
    do {
      const streams = counted();
      const common = Buffer.from(Array.from({ length: below(300) }, () => below(3)));
      const all = Array.from({ length: 1 + below(6) }, () => {
        const text = Buffer.from(
          common.subarray(0, below(2) === 0 ? common.length : below(common.length + 1)),
        );
        if (text.length > 0 && below(3) === 0) text[below(text.length)] = 9;
        return { text, at: 0, stream: streams.begin(`name-${below(2)}`) };
      });
      for (let open = [...all]; open.length > 0; open = open.filter(({ text, at }) => at < text.length)) {
        const each = open[below(open.length)]!;
        const end = Math.min(each.text.length, each.at + 1 + below(80));
        // A copy that is overwritten: nobody may keep the chunk.
        const chunk = Buffer.from(each.text.subarray(each.at, end));
        push(each.stream, chunk);
        chunk.fill(7);
        each.at = end;
        assert.ok(each.stream.bytes.equals(each.text.subarray(0, end)));
        const { state } = each.stream;
        assert.ok(state === undefined || state === end);
      }
      for (const { text, stream } of all) {
        assert.ok(stream.bytes.equals(text));
        stream.leave();
      }
      assert.equal(streams.names, 0);
    } while (performance.now() < until);
  });
});

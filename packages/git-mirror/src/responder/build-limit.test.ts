import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BuildLimit } from "./build-limit.ts";

const never = new AbortController().signal;

/** A build of chunks of ten bytes; each is computed when `go` is called. */
function build(chunks: number): {
  chunks: AsyncGenerator<Buffer, void, undefined>;
  go(): void;
  started: number;
} {
  const gates = Array.from({ length: chunks }, () => Promise.withResolvers<void>());
  let at = 0;
  let started = 0;
  const all = async function* (): AsyncGenerator<Buffer, void, undefined> {
    for (const { promise } of gates) {
      started++;
      await promise;
      yield Buffer.alloc(10);
    }
  };
  return {
    chunks: all(),
    go: () => gates[at++]?.resolve(),
    get started() {
      return started;
    },
  };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("BuildLimit", () => {
  it("a response whose client does not read on holds no place [svc 2.22]", async () => {
    const places = new BuildLimit(1);
    const slow = build(3);
    const reader = places.run(slow.chunks, never, 20);
    slow.go();
    await reader.next();
    assert.equal(places.running, 0);
    const other = build(1);
    other.go();
    assert.equal((await places.run(other.chunks, never, 20).next()).value?.length, 10);
    await reader.return();
  });

  it("computes as many chunks as there are places, for new responses first", async () => {
    const places = new BuildLimit(1);
    const [large, small, late] = [build(3), build(2), build(2)];
    const [first, second, third] = [large, small, late].map(({ chunks }) => places.run(chunks, never, 10));
    large.go();
    await first?.next();
    const smalls = second?.next();
    // The large one comes back for more before the late one comes at all.
    const more = first?.next();
    const lates = third?.next();
    await turn();
    assert.deepEqual([large.started, small.started, late.started], [1, 1, 0]);
    small.go();
    await smalls;
    await turn();
    assert.deepEqual([large.started, late.started], [1, 1]);
    late.go();
    await lates;
    await turn();
    assert.equal(large.started, 2);
    large.go();
    await more;
    assert.equal(places.running, 0);
  });

  it("a client that leaves during the wait ends its response and takes no place", async () => {
    const places = new BuildLimit(1);
    const holder = build(1);
    const held = places.run(holder.chunks, never, 10).next();
    const gone = new AbortController();
    const waiting = build(1);
    const answer = places.run(waiting.chunks, gone.signal, 10).next();
    await turn();
    gone.abort(new Error("the client left"));
    await assert.rejects(answer, /the client left/);
    assert.equal(waiting.started, 0);
    holder.go();
    await held;
    assert.equal(places.running, 0);
  });

  it("a response that fails releases its place", async () => {
    const places = new BuildLimit(1);
    const broken = (async function* damaged(): AsyncGenerator<Buffer, void, undefined> {
      yield Buffer.alloc(10);
      throw new Error("damaged");
    })();
    const answer = places.run(broken, never, 10);
    await answer.next();
    await assert.rejects(answer.next(), /damaged/);
    assert.equal(places.running, 0);
  });
});

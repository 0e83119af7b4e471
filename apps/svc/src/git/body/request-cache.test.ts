import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  decodeCommandBody,
  decodeFetchRequest,
  finish,
  type CommandBody,
  type CommandRequest,
} from "@devplat/git-protocol";
import { responseKeySteps } from "../../cache/responses/response-key.ts";
import { RequestCache } from "./request-cache.ts";

describe("RequestCache", () => {
  const oid = (number: number): string => number.toString(16).padStart(40, "0");
  const bodyOf = (...args: string[]): Buffer => {
    const line = (text: string): string => `${(text.length + 5).toString(16).padStart(4, "0")}${text}\n`;
    return Buffer.from(`${line("command=fetch")}${line("agent=git/2")}0001${args.map(line).join("")}0000`);
  };
  const requestOf = (body: CommandBody): CommandRequest => {
    assert.ok(body.kind === "commands" && body.commands[0] !== undefined);
    return body.commands[0].request;
  };

  it("decodes as git-protocol does, and gives the same object for the same bytes", () => {
    const known = new RequestCache();
    const bytes = bodyOf(`want ${oid(1)}`, "done");
    const first = known.decode(bytes);
    assert.deepEqual(first, decodeCommandBody(bytes));
    assert.equal(known.decode(Buffer.from(bytes)), first);
    assert.notEqual(known.decode(bodyOf(`want ${oid(2)}`, "done")), first);
  });

  it("keeps nothing of the bytes that it was given: they may change", () => {
    const known = new RequestCache();
    const bytes = bodyOf(`want ${oid(1)}`, "done");
    const before = Buffer.from(bytes);
    known.decode(bytes);
    bytes.fill(0);
    const again = known.decode(before);
    assert.ok(again.kind === "commands");
    assert.deepEqual(again.commands[0]?.bytes, before);
  });

  it("decodes a malformed body again each time, with the same error", () => {
    const known = new RequestCache();
    for (let time = 0; time < 2; time++) {
      assert.throws(() => known.decode(Buffer.from("0003")), { code: "bad_length" });
    }
    assert.equal(known.bytes, 0);
  });

  it("forgets the body that was not used for longest when they are over the limit", () => {
    const bodies = [1, 2, 3].map((number) => bodyOf(`want ${oid(number)}`, "done"));
    const size = bodies[0]?.length ?? 0;
    const known = new RequestCache(2 * size);
    const [one, two, three] = bodies.map((bytes) => [bytes, known.decode(bytes)] as const);
    assert.ok(one !== undefined && two !== undefined && three !== undefined);
    assert.equal(known.bytes, 2 * size);
    assert.equal(known.decode(two[0]), two[1]);
    assert.notEqual(known.decode(one[0]), one[1]);
    assert.equal(known.decode(two[0]), two[1]);
    assert.notEqual(known.decode(three[0]), three[1]);
  });

  it("does not keep a body that is over the limit by itself", () => {
    const bytes = bodyOf(`want ${oid(1)}`, "done");
    const known = new RequestCache(bytes.length - 1);
    assert.deepEqual(known.decode(bytes), decodeCommandBody(bytes));
    assert.equal(known.bytes, 0);
  });

  it("decodes the arguments of a fetch once; the key depends on the current refs", async () => {
    const known = new RequestCache();
    const request = requestOf(known.decode(bodyOf(`want ${oid(1)}`, "include-tag", "done")));
    const fetch = known.fetchOf(request);
    assert.deepEqual(fetch.fetch, decodeFetchRequest(request, "sha1"));
    assert.equal(known.fetchOf(request), fetch);
    const { capabilities } = request;
    for (const [resolved, tags] of [
      [[], "a"],
      [[], "a"],
      [[], "b"],
      [["x"], "b"],
      [[], undefined],
      [[], "a"],
    ] as const) {
      const parts = { format: "sha1", resolved, tags } as const;
      assert.equal(
        await known.keyOf(request, parts),
        finish(responseKeySteps({ ...parts, capabilities, fetch: fetch.fetch })),
      );
    }
  });

  it("equal large bodies share one result, even after a caller left", async () => {
    const wants = Array.from({ length: 2000 }, (_, number) => `want ${oid(number + 1)}`);
    const bytes = bodyOf(...wants, "done");
    const known = new RequestCache(1000);
    const gone = new AbortController();
    const left = assert.rejects(known.decodeInSlices(Buffer.from(bytes), gone.signal), /the client left/);
    gone.abort(new Error("the client left"));
    const { signal } = new AbortController();
    const [one, two] = await Promise.all([1, 2].map(() => known.decodeInSlices(Buffer.from(bytes), signal)));
    await left;
    assert.ok(one?.kind === "commands");
    assert.deepEqual(one.commands[0]?.bytes, bytes);
    assert.equal(one, two);
    assert.equal(await known.decodeInSlices(Buffer.from(bytes), signal), one);
    const other = bodyOf(...wants.slice(1), "done");
    assert.notEqual(await known.decodeInSlices(other, signal), one);
    assert.equal(known.bytes, 0);
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FillBehind, type CompleteResponse, type FillSource } from "./fill-behind.ts";
import { FillStarts } from "./fill-starts.ts";

const READER = { read: () => Promise.resolve(undefined), leave: () => undefined };
const FILE: CompleteResponse = {
  chunks: async function* () {
    yield Buffer.alloc(100);
  },
};

interface Transfer {
  readonly behind: FillBehind;
  readonly sources: FillSource[];
  /** The first client has all of it. */
  readonly deliver: () => void;
}

function transfer(starts: FillStarts, selfContained: boolean): Transfer {
  const delivered = Promise.withResolvers<void>();
  const sources: FillSource[] = [];
  const behind: FillBehind = new FillBehind({
    transfer: { complete: false, delivered: delivered.promise, joinable: true, join: () => READER },
    selfContained,
    fill: async (source) => void sources.push(source),
    over: () => starts.remove("a/b", behind),
  });
  starts.add("a/b", behind);
  return { behind, sources, deliver: delivered.resolve };
}

describe("FillBehind", () => {
  it("fills from the stored response when a client has all of it, not before [svc 2.13]", async () => {
    const { behind, sources, deliver } = transfer(new FillStarts(), true);
    const complete = behind.complete(FILE);
    await Promise.resolve();
    assert.deepEqual(sources, []);
    deliver();
    await complete;
    assert.deepEqual(sources, [{ kind: "file", file: FILE, isHere: true }]);
  });

  it("fills by a fetch of its own behind a shallow or filtered transfer", async () => {
    const { behind, sources, deliver } = transfer(new FillStarts(), false);
    deliver();
    await behind.complete(FILE);
    assert.deepEqual(sources, [undefined]);
  });

  it("does not fill behind a transfer that broke off", async () => {
    const { behind, sources } = transfer(new FillStarts(), true);
    behind.cancel();
    await behind.done;
    behind.start();
    assert.deepEqual(sources, []);
  });
});

describe("FillStarts", () => {
  it("a second transfer starts one fill, from the transfer that has everything [svc 2.13]", async () => {
    const starts = new FillStarts();
    const shallow = transfer(starts, false);
    assert.deepEqual(shallow.sources, []);
    const full = transfer(starts, true);
    const third = transfer(starts, true);
    await full.behind.done;
    assert.deepEqual(full.sources, [{ kind: "transfer", reader: READER, isHere: false }]);
    assert.deepEqual([...shallow.sources, ...third.sources], []);
  });

  it("a fill that started early is not started again at the end of its transfer", async () => {
    const starts = new FillStarts();
    const { behind, sources, deliver } = transfer(starts, true);
    starts.startOne("a/b");
    deliver();
    await behind.complete(FILE);
    assert.equal(sources.length, 1);
  });

  it("another repository's requests start nothing", () => {
    const starts = new FillStarts();
    const { sources } = transfer(starts, true);
    starts.startOne("a/other");
    assert.deepEqual(sources, []);
  });
});

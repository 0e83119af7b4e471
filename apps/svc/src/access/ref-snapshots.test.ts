import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { encodeLsRefsResponse } from "@devplat/git-protocol";
import { RefSnapshots } from "./ref-snapshots.ts";

const oid = (digit: string): string => digit.repeat(40);

describe("RefSnapshots.recent", () => {
  it("holds refs, HEAD and ids of recent yes answers, and is the same object until something changes", () => {
    let ms = 0;
    const clock: Clock = { now: () => ms, monotonic: () => ms, sleep: () => Promise.resolve() };
    const tips = new RefSnapshots(600_000, clock);
    const yes = (...lines: [string, string][]): Buffer =>
      encodeLsRefsResponse(
        lines.map(([id, name]) => ({
          oid: oid(id),
          name,
          symrefTarget: undefined,
          peeled: undefined,
          unknown: [],
        })),
      );
    tips.record(["HEAD"], yes(["a", "HEAD"]));
    ms = 300_000;
    tips.record(["refs/heads/"], yes(["a", "refs/heads/main"], ["b", "refs/heads/dev"]));
    const first = tips.recent();
    assert.deepEqual([...first.oids], [oid("a"), oid("b")]);
    assert.equal(first.head, oid("a"));
    assert.deepEqual([...first.refs.keys()], ["refs/heads/main", "refs/heads/dev"]);
    assert.equal(tips.recent(), first);
    ms = 600_001;
    assert.equal(tips.recent().head, undefined);
    assert.equal(tips.recent().refs.size, 2);
    ms = 900_001;
    assert.equal(tips.recent().oids.size, 0);
  });
});

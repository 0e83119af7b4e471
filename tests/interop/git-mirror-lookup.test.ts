import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { systemClock } from "@devplat/base";
import { EMPTY_FETCH } from "@devplat/git-protocol";
import { IdleDetector, createMirrorSet, type MirrorSet } from "@devplat/git-mirror";
import { ID, openStorage } from "./git-mirror-open.ts";
import { startMirrorStand, type MirrorStand } from "./git-mirror-stand.ts";

const UNKNOWN = "1".repeat(40);
const onLateFailure = (error: unknown): void => assert.fail(String(error));

/** The upstream showed one branch. */
function tipsOf(oid: string): { isTip(other: string): boolean; recent(): ReturnType<typeof recentOf> } {
  const recent = recentOf(oid);
  return { isTip: (other) => other === oid, recent: () => recent };
}

function recentOf(oid: string) {
  const name = "refs/heads/main";
  return { refs: new Map([[name, { name, oid }]]), head: oid, oids: new Set([oid]) };
}

describe("a mirror set of one filled mirror", () => {
  let stand: MirrorStand;
  let set: MirrorSet;
  before(async () => {
    stand = await startMirrorStand({ steps: 3 });
    const { root, threads } = stand;
    const clock = systemClock;
    set = createMirrorSet({
      storage: openStorage({ root, threads }),
      threads,
      clock,
      idle: new IdleDetector({ clock, idleMs: 0 }),
      pruneAfterMs: Infinity,
      onRepackFailure: (key, error) => assert.fail(`${key}: ${String(error)}`),
      onDamagedIndex: (file) => assert.fail(file),
    });
    for (const step of stand.steps) await stand.fill(set.mirrors.of(ID), step);
  });
  after(async () => {
    set.stop();
    await set.settled();
    await set.close();
    await stand.stop();
  });
  const oid = (step: number): string => stand.steps[step]!.oid;
  const lookup = (...oids: string[]) => ({ id: ID, format: "sha1" as const, oids, onLateFailure });

  it("tells whether all objects are here", async () => {
    assert.equal(await set.lookup.areHere(lookup(oid(0), oid(2))), true);
    assert.equal(await set.lookup.areHere(lookup(oid(0), UNKNOWN)), false);
    const elsewhere = { owner: "org", name: "other", key: "org/other" };
    assert.equal(await set.lookup.areHere({ ...lookup(oid(0)), id: elsewhere }), false);
    assert.equal(await set.lookup.areHere({ ...lookup(oid(0)), format: "sha256" }), false);
  });

  it("tells whether all objects are reachable from the tips", async () => {
    const tips = tipsOf(oid(1));
    assert.equal(await set.lookup.areReachable(lookup(oid(1), oid(0)), tips), true);
    assert.equal(await set.lookup.areReachable(lookup(oid(0), oid(2)), tips), false);
    assert.equal(await set.lookup.areReachable(lookup(UNKNOWN), tips), false);
    assert.equal(await set.lookup.areReachable(lookup(UNKNOWN), tipsOf(UNKNOWN)), true);
  });

  it("serves only wants that the tips reach or the upstream gave to the request", async () => {
    const request = (want: string) => ({
      id: ID,
      format: "sha1" as const,
      fetch: { ...EMPTY_FETCH, wants: [want], done: true },
      tips: tipsOf(oid(1)),
      onLateFailure,
    });
    const check = async (want: string, given?: ReadonlySet<string>): Promise<string> => {
      const found = await set.responder.check(request(want), given);
      if (found.kind !== "unservable") found.view.release();
      return found.kind;
    };
    assert.equal(await check(oid(0)), "servable");
    assert.equal(await check(UNKNOWN), "missing");
    assert.equal(await check(oid(2)), "unservable");
    assert.equal(await check(oid(2), new Set([oid(2)])), "servable");
  });
});

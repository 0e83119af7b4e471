import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger, systemClock } from "@devplat/base";
import { repositoryId } from "../../../access/repository-id.ts";
import type { LedFetch } from "../../../coordination/led-fetch.ts";
import type { JoinOptions, SharedFetchTurn } from "../../../coordination/shared-fetches.ts";
import { BackgroundWork } from "../../background-work.ts";
import { InstanceSharing } from "./instance-sharing.ts";

const ID = repositoryId("acme", "widgets");
const signal = new AbortController().signal;

/** Sharing over turns of other instances that the test gives, and a bucket that has a response from some read on. */
function sharingOver(
  turns: readonly SharedFetchTurn[],
  options: { inBucketAfter?: number; usable?: boolean; becomesShared?: boolean } = {},
) {
  const { inBucketAfter = 0, usable = true, becomesShared = false } = options;
  const left = [...turns];
  const joined: { readonly key: string; readonly insteadOf: number | undefined }[] = [];
  const results: string[] = [];
  const refreshed: number[] = [];
  const stopping = new AbortController();
  let reads = 0;
  let epoch = 3;
  const sharing = new InstanceSharing({
    fetches: {
      join: async (key: string, { insteadOf, signal: ends }: JoinOptions) => {
        joined.push({ key, insteadOf });
        ends.throwIfAborted();
        const turn = left.shift();
        if (turn !== undefined) return Promise.resolve(turn);
        return new Promise((_, reject) => ends.addEventListener("abort", () => reject(new Error("ended"))));
      },
      becomesShared: async () => Promise.resolve(becomesShared),
    },
    keyOf: ({ key }) => key,
    epochs: { of: () => epoch },
    manifests: {
      current: async () => {
        reads++;
        return Promise.reject(new Error("the bucket is away"));
      },
    },
    bucket: { known: () => (reads > inBucketAfter ? ({} as never) : undefined) },
    mirrors: { refresh: async (_, waitMs) => Promise.resolve(refreshed.push(waitMs) > 0) },
    queue: { add: () => undefined, hurry: () => undefined, ended: async () => Promise.resolve(true) },
    isUsable: () => usable,
    reports: { turn: (_, { result }) => void results.push(result), led: () => undefined },
    work: new BackgroundWork(silentLogger),
    clock: systemClock,
    firstByteMs: 100,
    stopping: stopping.signal,
  });
  return { sharing, joined, results, refreshed, stop: () => stopping.abort(), purge: () => void epoch++ };
}

const shared = (fence: number): SharedFetchTurn => ({ kind: "shared", fence });
const lead: SharedFetchTurn = {
  kind: "lead",
  fetch: { fence: 9, onAwaited: () => undefined } as unknown as LedFetch,
};

describe("InstanceSharing", () => {
  it("a response of another instance is here, also if the manifest cannot be read", async () => {
    const { sharing, results } = sharingOver([shared(4)]);
    assert.deepEqual(await sharing.response(ID, "k", { signal }), { kind: "here", fence: 4 });
    assert.deepEqual(results, ["shared"]);
  });

  it("a response that is not in the bucket is fetched in place of that fetch", async () => {
    const { sharing, joined, results } = sharingOver([shared(4), lead], { inBucketAfter: 5 });
    assert.equal((await sharing.response(ID, "k", { signal })).kind, "lead");
    assert.deepEqual(
      joined.map(({ insteadOf }) => insteadOf),
      [undefined, 4],
    );
    assert.deepEqual(results, ["led"]);
  });

  const late: SharedFetchTurn = { kind: "alone", reason: "too_long", running: 4 };
  const lateFence = async (
    { sharing }: ReturnType<typeof sharingOver>,
    responds = signal,
  ): Promise<number | undefined> => {
    const turn = await sharing.response(ID, "k", { signal });
    assert.ok(turn.kind === "alone" && turn.late !== undefined);
    return await turn.late(responds);
  };

  it("a response that another instance shares late is counted when the bucket has it", async () => {
    const sharing = sharingOver([late], { becomesShared: true });
    assert.equal(await lateFence(sharing), 4);
    assert.deepEqual(sharing.results, ["too_long", "late"]);
  });

  it("a late response is not used after a failure, or if the code host was first", async () => {
    const failed = sharingOver([late]);
    assert.equal(await lateFence(failed), undefined);
    const missing = sharingOver([late], { becomesShared: true, inBucketAfter: 5 });
    assert.equal(await lateFence(missing), undefined);
    const second = sharingOver([late], { becomesShared: true });
    assert.equal(await lateFence(second, AbortSignal.abort()), undefined);
    for (const { results } of [failed, missing, second]) assert.deepEqual(results, ["too_long"]);
  });

  it("objects of another instance are here when the mirror was brought up to date", async () => {
    const { sharing, refreshed } = sharingOver([shared(4), shared(5)]);
    assert.deepEqual(await sharing.objects(ID, "a b", { signal }), { kind: "here", fence: 4 });
    await sharing.objects(ID, "a b", { signal, waitMs: 7 });
    assert.deepEqual(refreshed, [100, 7]);
  });

  it("a fetch after a purge is another one, and so is one of other objects", async () => {
    const { sharing, joined, purge } = sharingOver([lead, lead, lead, lead]);
    await sharing.objects(ID, "a", { signal });
    await sharing.objects(ID, "b", { signal });
    await sharing.response(ID, "a", { signal });
    purge();
    await sharing.objects(ID, "a", { signal });
    assert.equal(new Set(joined.map(({ key }) => key)).size, 4);
  });

  it("fetches alone without bucket or database, and while the service stops", async () => {
    const away = sharingOver([lead], { usable: false });
    assert.deepEqual(await away.sharing.response(ID, "k", { signal }), { kind: "alone" });
    assert.deepEqual(away.joined, []);
    const gone = sharingOver([{ kind: "alone", reason: "unavailable" }]);
    assert.deepEqual(await gone.sharing.response(ID, "k", { signal }), { kind: "alone" });
    assert.deepEqual(gone.results, ["unavailable"]);
    const ending = sharingOver([]);
    const turn = ending.sharing.response(ID, "k", { signal });
    ending.stop();
    assert.deepEqual(await turn, { kind: "alone" });
  });

  it("a client that leaves ends the wait with its reason", async () => {
    const { sharing } = sharingOver([]);
    const client = new AbortController();
    const turn = sharing.response(ID, "k", { signal: client.signal });
    client.abort(new Error("left"));
    await assert.rejects(turn, /left/);
  });
});

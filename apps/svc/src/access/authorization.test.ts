import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decodeFetchRequest, encodeLsRefsResponse } from "@devplat/git-protocol";
import type { RefQueries } from "./access-request.ts";
import { FetchAuthorization, type ObjectLookup } from "./authorization.ts";
import { ManualClock } from "./manual-clock.test-kit.ts";
import { RefSnapshots } from "./ref-snapshots.ts";

const SECRET = "b".repeat(40);
const refs = (branches: Readonly<Record<string, string>>): Buffer =>
  encodeLsRefsResponse(
    Object.entries(branches).map(([name, digit]) => ({
      oid: digit.repeat(40),
      name: `refs/heads/${name}`,
      symrefTarget: undefined,
      peeled: undefined,
      unknown: [],
    })),
  );

/** The authorization of a fetch of one object, over refs that the test changes. */
function authorizationOf(
  snapshots: RefSnapshots,
  areReachable: ObjectLookup["areReachable"] = () => Promise.resolve(false),
  {
    areHere = () => Promise.resolve(false),
    ask = () => Promise.reject(new Error("no probe is needed")),
  }: {
    readonly areHere?: ObjectLookup["areHere"];
    readonly ask?: RefQueries["ask"];
  } = {},
): FetchAuthorization {
  const command = { command: "fetch", capabilities: [], args: [`want ${SECRET}`, "done"] };
  return new FetchAuthorization({
    queries: {
      ask,
      confirm: () => Promise.resolve({ kind: "authorized", sentAt: 1 }),
    },
    objects: { areHere, areReachable },
    refs: snapshots,
    request: {
      authorization: undefined,
      target: { owner: "org", name: "r", upstreamPath: "/org/r.git/git-upload-pack" },
      policy: { timeoutSeconds: 1 },
      context: { remoteAddress: "127.0.0.1" },
    },
    requested: { command, fetch: decodeFetchRequest(command, "sha1"), format: "sha1" },
    sentAt: 0,
  });
}

describe("FetchAuthorization", () => {
  const shown = (): RefSnapshots => {
    const snapshots = new RefSnapshots(600_000, new ManualClock());
    snapshots.record([], refs({ main: "a", secret: "b" }));
    return snapshots;
  };

  it("is current while the ref that shows the wants is known", async () => {
    const snapshots = shown();
    const authorization = authorizationOf(snapshots);
    await authorization.checkWants("key");
    assert.equal(authorization.wantsShown, true);
    snapshots.record([], refs({ main: "a", secret: "b", other: "c" }));
    assert.deepEqual(await authorization.renew(), { kind: "current" });
  });

  it("a ref that was deleted during a wait is decided again", async () => {
    const snapshots = shown();
    const authorization = authorizationOf(snapshots);
    await authorization.checkWants("key");
    snapshots.record(["refs/heads/"], refs({ main: "a" }));
    assert.deepEqual(await authorization.renew(), { kind: "replaced" });
  });

  it("a repository that was replaced during the check does not show the wants", async () => {
    const snapshots = new RefSnapshots(600_000, new ManualClock());
    snapshots.record([], refs({ main: "a" }));
    const authorization = authorizationOf(snapshots, () => {
      // Another repository under the same name: it shares no object.
      snapshots.record([], refs({ main: "d" }));
      return Promise.resolve(true);
    });
    await authorization.checkWants("key");
    assert.equal(authorization.wantsShown, false);
    assert.deepEqual(await authorization.renew(), { kind: "replaced" });
  });

  describe("recheckWants", () => {
    const surveyed = (): RefSnapshots => {
      const snapshots = new RefSnapshots(600_000, new ManualClock());
      snapshots.record([], refs({ main: "a" }));
      return snapshots;
    };
    /** The authorization after it was decided, when the object has come from another instance. */
    const arrived = async (
      snapshots: RefSnapshots,
      isHere: boolean,
      shows: Readonly<Record<string, string>>,
    ): Promise<{ readonly authorization: FetchAuthorization; readonly asked: () => number }> => {
      let asked = 0;
      const ask: RefQueries["ask"] = async (_request, _command, prefixes) => {
        asked++;
        const body = refs(shows);
        snapshots.record(prefixes, body);
        return Promise.resolve({ kind: "authorized", body, sentAt: 2 });
      };
      const areHere = async (): Promise<boolean> => Promise.resolve(isHere);
      const authorization = authorizationOf(snapshots, undefined, { areHere, ask });
      await authorization.checkWants("key");
      assert.equal(authorization.wantsShown, false);
      assert.equal(asked, 0, "refs that were shown a moment ago are not requested again");
      return { authorization, asked: () => asked };
    };

    it("asks for refs although they were shown a moment ago", async () => {
      const { authorization, asked } = await arrived(surveyed(), true, { main: "a", pushed: "b" });
      assert.equal(await authorization.recheckWants(), true);
      assert.equal(authorization.wantsShown, true);
      assert.deepEqual(await authorization.renew(), { kind: "current" });
      assert.equal(asked(), 1);
    });

    it("shows nothing that the code host does not show", async () => {
      const { authorization, asked } = await arrived(surveyed(), true, { main: "a", other: "c" });
      assert.equal(await authorization.recheckWants(), false);
      assert.equal(authorization.wantsShown, false);
      assert.equal(asked(), 1);
    });

    it("asks nothing if the objects are not here, or a ref shows them already", async () => {
      const missing = await arrived(surveyed(), false, { main: "a", pushed: "b" });
      assert.equal(await missing.authorization.recheckWants(), false);
      const snapshots = surveyed();
      const known = await arrived(snapshots, true, { main: "a", pushed: "b" });
      snapshots.record([], refs({ main: "a", secret: "b" }));
      assert.equal(await known.authorization.recheckWants(), true);
      assert.deepEqual([missing.asked(), known.asked()], [0, 0]);
    });
  });
});

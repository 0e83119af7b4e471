import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { SIDE_BAND, encodeFetchResponse, encodeSideBand } from "@devplat/git-protocol";
import { git, repositories, until } from "@devplat/testkit";
import { basic, command, contentOf, startStand, type Answer, type Stand } from "./svc-git-stand.ts";

const storeOf = (stand: Stand, name: string): string => join(stand.storagePath, "org", `${name}.git`);
const stored = async (stand: Stand, name: string): Promise<string[]> =>
  (await readdir(join(storeOf(stand, name), "objects", "pack")).catch(() => [])).filter((file) =>
    file.endsWith(".pack"),
  );

/** A listed repository of many blobs that was cloned once, and two commits that came after. */
async function moved(stand: Stand, name: string): Promise<{ path: string; tip: string; bytes: number }> {
  const { path } = await stand.codeHost.addRepository("org", name, {
    build: (dir) => repositories.bigBlobs(dir, { blobs: 2, bytes: 300_000 }),
  });
  stand.list("org", name);
  const first = await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/${name}`, `${name}-old`]);
  assert.equal(first.code, 0, first.stderr);
  await stand.cache.settled();
  const bytes = stand.codeHost.calls.find((call) => call.command === "fetch")?.bytesOut ?? 0;
  await stand.codeHost.push("org", name, { commits: 2 });
  stand.codeHost.resetCalls();
  return { path, tip: await git(["-C", path, "rev-parse", "refs/heads/main"]), bytes };
}

const fetchOf = (tip: string, ...more: string[]): Buffer =>
  command("fetch", ["no-progress", ...more, `want ${tip}`, "done"]);
const visible = (answer: Answer): string => answer.text.replaceAll("\u0001", "<1>");
const lsRefs = command("ls-refs", ["ref-prefix HEAD", "ref-prefix refs/heads/", "ref-prefix refs/tags/"]);

describe("a miss when the store has a base", () => {
  let stand: Stand;
  before(async () => {
    stand = await startStand();
  });
  after(() => stand.stop());

  const counted = (name: string, result: string): Promise<number> =>
    stand.metric(`svc_cache_request_total{owner="org",repo="${name}",result="${result}"}`);

  it("costs the code host only the delta, for full, shallow and incremental fetches [svc 2.15]", async () => {
    const { path, bytes } = await moved(stand, "delta");
    const clone = await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/delta`, "delta-new"]);
    assert.equal(clone.code, 0, clone.stderr);
    const upstream = stand.codeHost.calls.filter((call) => call.command === "fetch");
    assert.equal(upstream.length, 1);
    assert.ok((upstream[0]?.bytesOut ?? bytes) < bytes / 50, `${upstream[0]?.bytesOut} of ${bytes}`);
    const behind = await stand.git(["-C", "delta-old", "fetch", "-q"]);
    assert.equal(behind.code, 0, behind.stderr);
    const shallow = await stand.git(["clone", "-q", "--depth=1", `${stand.url}/org/delta`, "delta-1"]);
    assert.equal(shallow.code, 0, shallow.stderr);
    assert.equal(stand.upstream("fetch"), 1);
    for (const folder of ["delta-new", "delta-old"]) {
      assert.equal(await contentOf(stand.folder(folder)), await contentOf(path));
    }
    assert.equal(await contentOf(storeOf(stand, "delta")), await contentOf(path));
    assert.equal(await counted("delta", "miss"), 2);
    assert.equal(await counted("delta", "hit"), 2);
  });

  it("concurrent different requests for a missing tip share one upstream fetch [svc 2.15]", async () => {
    const { tip } = await moved(stand, "runners");
    await stand.post("org/runners", lsRefs);
    stand.codeHost.inject({ path: /runners/, command: "fetch" }, { delayMs: 200 });
    const answers = await Promise.all(
      ["ofs-delta", "thin-pack", "deepen 1", "deepen 2", "filter blob:none"].map((argument) =>
        stand.post("org/runners", fetchOf(tip, argument)),
      ),
    );
    stand.codeHost.clearFaults();
    for (const answer of answers) assert.match(answer.text, /PACK/);
    assert.equal(stand.upstream("fetch"), 1);
    assert.equal(await counted("runners", "hit"), 4);
  });

  it("a refusal is for its caller only, and an authorized caller gets the objects", async () => {
    const { tip } = await moved(stand, "refused");
    await stand.post("org/refused", lsRefs);
    stand.codeHost.addUser("bob", "bob-token");
    const bob = { Authorization: basic("bob-token") };
    await stand.post("org/refused", lsRefs, bob);
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject(
      { path: /refused/, command: "fetch", times: 1 },
      { until: go.promise, status: 403 },
    );
    const [fetched, planned] = [stand.upstream("fetch"), stand.planned()];
    const first = stand.post("org/refused", fetchOf(tip));
    await until(() => stand.upstream("fetch") === fetched + 1);
    const following = stand.post("org/refused", fetchOf(tip, "ofs-delta"), bob);
    await until(() => stand.planned() === planned + 2);
    go.resolve();
    const second = await following;
    stand.codeHost.clearFaults();
    assert.equal((await first).status, 403);
    assert.match(second.text, /PACK/);
  });

  it("an ERR of the code host reaches the client as it is", async () => {
    await moved(stand, "error");
    const answer = await stand.post("org/error", fetchOf("1".repeat(40)));
    assert.match(answer.text, /^[0-9a-f]{4}ERR /);
    assert.equal(stand.upstream("fetch"), 1);
    assert.equal((await stored(stand, "error")).length, 1);
  });

  it("a response that breaks off leaves the store unchanged, and is forwarded [svc 2.19]", async () => {
    const { tip } = await moved(stand, "broken");
    await stand.post("org/broken", lsRefs);
    stand.codeHost.inject({ path: /broken/, command: "fetch", times: 1 }, { cutAfterBytes: 100 });
    const answer = await stand.post("org/broken", fetchOf(tip));
    stand.codeHost.clearFaults();
    assert.match(answer.text, /PACK/);
    assert.equal(stand.upstream("fetch"), 2);
    assert.equal((await stored(stand, "broken")).length, 1);
    await git(["-C", storeOf(stand, "broken"), "fsck", "--full"]);
  });

  it("a damaged pack in a response leaves the store unchanged, and is forwarded", async () => {
    const { tip } = await moved(stand, "foul");
    await stand.post("org/foul", lsRefs);
    const pack = Buffer.concat([Buffer.from("PACK"), Buffer.alloc(60, 7)]);
    const body = encodeFetchResponse([{ name: "packfile", packets: encodeSideBand(SIDE_BAND.pack, pack) }]);
    const headers = { "content-type": "application/x-git-upload-pack-result" };
    stand.codeHost.inject({ path: /foul/, command: "fetch", times: 1 }, { status: 200, headers, body });
    const answer = await stand.post("org/foul", fetchOf(tip));
    stand.codeHost.clearFaults();
    assert.match(answer.text, /PACK/);
    assert.equal(stand.upstream("fetch"), 2);
    assert.equal((await stored(stand, "foul")).length, 1);
    assert.deepEqual(
      await readdir(join(stand.storagePath, "org")).then((all) => all.filter((one) => one.endsWith("~"))),
      [],
    );
  });

  it("a code host that cannot be reached gives its name [svc 2.33]", async () => {
    const { tip } = await moved(stand, "silent");
    stand.list("org", "silent", { timeoutSeconds: 1 });
    await stand.post("org/silent", lsRefs);
    stand.codeHost.inject({ path: /silent/, command: "fetch", times: 1 }, { hang: true });
    const answer = await stand.post("org/silent", fetchOf(tip));
    stand.codeHost.clearFaults();
    assert.equal(answer.status, 504);
  });

  it("no byte of the fetch in time: the request is forwarded, objects come later [svc 2.16]", async () => {
    const own = await startStand({ firstByteMs: 50 });
    try {
      const { tip } = await moved(own, "late");
      await own.post("org/late", lsRefs);
      const go = Promise.withResolvers<void>();
      own.codeHost.inject({ path: /late/, command: "fetch", times: 2 }, { until: go.promise });
      const answering = own.post("org/late", fetchOf(tip));
      // Neither of them has a byte yet: that of the mirror, and the request's own.
      await until(() => own.upstream("fetch") === 2);
      go.resolve();
      const answer = await answering;
      assert.match(answer.text, /PACK/);
      assert.equal(answer.headers["x-svc-cache"], "miss");
      await until(async () => {
        const folder = storeOf(own, "late");
        return (await git(["-C", folder, "rev-parse", "main"])) === tip;
      });
      assert.equal((await own.post("org/late", fetchOf(tip, "deepen 1"))).headers["x-svc-cache"], "hit");
      assert.equal(own.upstream("fetch"), 2);
    } finally {
      await own.stop();
    }
  });

  it("a late fetch that brings an unrelated history quarantines the store too", async () => {
    const own = await startStand({ firstByteMs: 50 });
    try {
      await moved(own, "other");
      const [old = ""] = await stored(own, "other");
      await own.codeHost.remove("org", "other");
      const { path } = await own.codeHost.addRepository("org", "other", {
        build: (dir) => repositories.linear(dir, { seed: 99 }),
      });
      await own.post("org/other", lsRefs);
      const go = Promise.withResolvers<void>();
      own.codeHost.inject({ path: /other/, command: "fetch", times: 2 }, { until: go.promise });
      const tip = await git(["-C", path, "rev-parse", "refs/heads/main"]);
      const answering = own.post("org/other", fetchOf(tip));
      await until(() => own.upstream("fetch") === 2);
      assert.ok((await stored(own, "other")).includes(old));
      go.resolve();
      assert.match((await answering).text, /PACK/);
      await until(async () => !(await stored(own, "other")).includes(old));
    } finally {
      await own.stop();
    }
  });

  it("tips without shared history quarantine the store and its stored responses [svc 1.31]", async () => {
    await moved(stand, "anew");
    const [old] = await stored(stand, "anew");
    await stand.codeHost.remove("org", "anew");
    const { path } = await stand.codeHost.addRepository("org", "anew", {
      build: (dir) => repositories.linear(dir, { seed: 99 }),
    });
    const clone = await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/anew`, "anew-new"]);
    assert.equal(clone.code, 0, clone.stderr);
    assert.equal(await contentOf(stand.folder("anew-new")), await contentOf(path));
    await stand.cache.settled();
    assert.equal((await stored(stand, "anew")).includes(old ?? ""), false);
  });

  it("a force push to a related history keeps the store", async () => {
    const { path } = await moved(stand, "forced");
    const [old = ""] = await stored(stand, "forced");
    await git(["-C", path, "update-ref", "refs/heads/main", "refs/heads/main~3"]);
    await stand.codeHost.push("org", "forced", { commits: 1 });
    const clone = await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/forced`, "forced-new"]);
    assert.equal(clone.code, 0, clone.stderr);
    await stand.cache.settled();
    assert.ok((await stored(stand, "forced")).includes(old));
    const refs = ["for-each-ref", "--format=%(objectname) %(refname)"];
    assert.equal(await git(["-C", stand.folder("forced-new"), ...refs]), await git(["-C", path, ...refs]));
  });
});

describe("a client that waits for the code host", () => {
  it("gets signs of life, then its pack, which stock git takes [svc 2.17]", async () => {
    const stand = await startStand({ keepAliveMs: 50 });
    try {
      const { path, tip } = await moved(stand, "slow");
      await stand.post("org/slow", lsRefs);
      stand.codeHost.inject({ path: /slow/, command: "fetch", times: 1 }, { delayMs: 400 });
      const answer = await stand.post("org/slow", fetchOf(tip));
      assert.match(visible(answer), /^000dpackfile\n(?:0005<1>){3,}/);
      assert.equal(stand.upstream("fetch"), 1);
      await stand.codeHost.push("org", "slow", { commits: 1 });
      stand.codeHost.inject({ path: /slow/, command: "fetch", times: 1 }, { delayMs: 400 });
      const clone = await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/slow`, "slow"]);
      stand.codeHost.clearFaults();
      assert.equal(clone.code, 0, clone.stderr);
      assert.equal(await contentOf(stand.folder("slow")), await contentOf(path));
    } finally {
      await stand.stop();
    }
  });

  it("gets the code host's response where the store could not receive the objects", async () => {
    const stand = await startStand({ keepAliveMs: 50 });
    try {
      const { tip } = await moved(stand, "fallback");
      await stand.post("org/fallback", lsRefs);
      stand.codeHost.inject(
        { path: /fallback/, command: "fetch", times: 1 },
        { delayMs: 300, cutAfterBytes: 100 },
      );
      const answer = await stand.post("org/fallback", fetchOf(tip));
      stand.codeHost.clearFaults();
      assert.match(visible(answer), /^000dpackfile\n(?:0005<1>)+[0-9a-f]{4}<1>PACK/);
      assert.match(answer.text, /0000$/);
    } finally {
      await stand.stop();
    }
  });
});

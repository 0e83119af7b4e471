import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { git, repositories } from "@devplat/testkit";
import { basic, command, contentOf, startStand, type Stand } from "./svc-git-stand.ts";

const SERVICE = "service-token";
const HEADS = command("ls-refs", ["ref-prefix HEAD", "ref-prefix refs/heads/"]);
const EVERYTHING = command("ls-refs", []);
/** Calls that a warming itself makes. */
const isWarming = (authorization: string | undefined): boolean =>
  Buffer.from((authorization ?? "").replace("Basic ", ""), "base64")
    .toString()
    .endsWith(`:${SERVICE}`);

describe("warming with cache.service_token", { timeout: 480_000 }, () => {
  let stand: Stand;
  let name: string;
  let path: string;
  let count = 0;
  before(async () => {
    stand = await startStand({ serviceToken: SERVICE });
    stand.codeHost.addUser("svc", SERVICE);
    stand.codeHost.addUser("ada", "ada-token");
  });
  after(() => stand.stop());
  const ada = { Authorization: basic("ada-token") };

  /** A private repository that was cloned once. */
  beforeEach(async () => {
    name = `r${++count}`;
    ({ path } = await stand.codeHost.addRepository("org", name, {
      private: true,
      build: (dir) => repositories.bigBlobs(dir, { blobs: 2, bytes: 200_000 }),
    }));
    stand.list("org", name);
    await clone("--mirror", `${name}-first`);
    await stand.cache.settled();
    stand.codeHost.resetCalls();
  });

  const clone = async (...args: string[]): Promise<void> => {
    const header = `http.extraHeader=Authorization: ${ada.Authorization}`;
    const folder = args.pop() ?? "";
    const done = await stand.git(["-c", header, "clone", "-q", ...args, `${stand.url}/org/${name}`, folder]);
    assert.equal(done.code, 0, done.stderr);
  };
  const warmed = (result: "success" | "error"): Promise<number> =>
    stand.metric(`svc_cache_warm_total{result="${result}"}`);
  const warmCalls = (kind: string): number =>
    stand.codeHost.calls.filter((call) => isWarming(call.authorization) && call.command === kind).length;
  const change = async (work: () => Promise<unknown>, lsRefs = HEADS): Promise<[number, number]> => {
    const earlier = [await warmed("success"), await warmed("error")] as const;
    await work();
    await stand.post(`org/${name}`, lsRefs, ada);
    await stand.cache.settled();
    return [(await warmed("success")) - earlier[0], (await warmed("error")) - earlier[1]];
  };

  it("a push that an ls-refs shows is prefetched as a delta, and the next clone hits [svc 4.1]", async () => {
    assert.deepEqual(await change(() => stand.codeHost.push("org", name, { commits: 2 })), [1, 0]);
    const fetched = stand.codeHost.calls.filter((call) => call.command === "fetch");
    assert.equal(fetched.length, 1);
    assert.ok((fetched[0]?.bytesOut ?? Infinity) < 5000, `${fetched[0]?.bytesOut} bytes`);
    await clone("--mirror", `${name}-second`);
    assert.equal(stand.upstream("fetch"), 1);
    assert.equal(await contentOf(stand.folder(`${name}-second`)), await contentOf(path));
  });

  it("warming requests HEAD, branches and tags with the service's token [svc 4.4 8.7]", async () => {
    await git(["-C", path, "update-ref", "refs/pull/1/head", "HEAD"]);
    await stand.codeHost.push("org", name, { commits: 1 });
    const proposal = await git(["-C", path, "commit-tree", "-m", "proposal", "HEAD^{tree}"]);
    await git(["-C", path, "update-ref", "refs/pull/2/head", proposal]);
    await change(async () => undefined);
    const own = stand.codeHost.calls.filter(({ authorization }) => isWarming(authorization));
    assert.deepEqual(
      own.map(({ method, command: what }) => what ?? method),
      ["GET", "ls-refs", "fetch"],
    );
    const store = join(stand.storagePath, "org", `${name}.git`);
    const objects = await git(["-C", store, "cat-file", "--batch-all-objects", "--batch-check"]);
    assert.ok(!objects.includes(proposal));
    await git(["-C", store, "fsck", "--full"]);
  });

  it("unchanged refs start no warming [svc 4.3]", async () => {
    assert.deepEqual(await change(async () => undefined, EVERYTHING), [0, 0]);
    assert.deepEqual(await change(async () => undefined), [0, 0]);
    assert.equal(warmCalls("ls-refs"), 0);
  });

  it("a missing ref counts only in a response without prefixes [svc 4.3]", async () => {
    await change(() => git(["-C", path, "branch", "gone", "HEAD~1"]));
    const drop = (): Promise<string> => git(["-C", path, "branch", "-D", "gone"]);
    assert.deepEqual(await change(drop), [0, 0]);
    assert.deepEqual(await change(async () => undefined, EVERYTHING), [1, 0]);
    assert.deepEqual(await change(async () => undefined, EVERYTHING), [0, 0]);
  });

  it("refs of pull requests start no warming", async () => {
    const propose = async (): Promise<unknown> => {
      const proposal = await git(["-C", path, "commit-tree", "-m", "x", "HEAD^{tree}"]);
      return git(["-C", path, "update-ref", "refs/pull/7/head", proposal]);
    };
    assert.deepEqual(await change(propose, EVERYTHING), [0, 0]);
  });

  it("one at a time for a repository: twenty concurrent ls-refs fetch once [svc 4.5]", async () => {
    await stand.codeHost.push("org", name, { commits: 1 });
    stand.codeHost.inject({ path: new RegExp(name), command: "fetch" }, { delayMs: 150 });
    await Promise.all(Array.from({ length: 20 }, () => stand.post(`org/${name}`, HEADS, ada)));
    await stand.cache.settled();
    stand.codeHost.clearFaults();
    assert.equal(warmCalls("fetch"), 1);
  });

  it("a request during a warming causes another one, which sees later pushes", async () => {
    await stand.codeHost.push("org", name, { commits: 1 });
    stand.codeHost.inject({ path: new RegExp(name), command: "fetch", times: 1 }, { delayMs: 300 });
    assert.equal(await stand.cache.warm("org", name), "started");
    while (warmCalls("fetch") === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    await stand.codeHost.push("org", name, { commits: 1 });
    assert.equal(await stand.cache.warm("org", name), "started");
    await stand.cache.settled();
    stand.codeHost.clearFaults();
    assert.equal(warmCalls("fetch"), 2);
    assert.equal(
      await git(["-C", join(stand.storagePath, "org", `${name}.git`), "rev-parse", "main"]),
      await git(["-C", path, "rev-parse", "main"]),
    );
  });

  it("a refused token is an error, logged, and not retried immediately [svc 4.6]", async () => {
    stand.codeHost.inject({ path: new RegExp(`${name}.git/info`) }, { status: 403 });
    assert.deepEqual(await change(() => stand.codeHost.push("org", name, { commits: 1 })), [0, 1]);
    assert.match(stand.cache.stats("org", name).lastError ?? "", /answered 403 when the warming token/);
    assert.ok(!JSON.stringify(stand.log).includes(SERVICE));
    assert.deepEqual(await change(() => stand.codeHost.push("org", name, { commits: 1 })), [0, 0]);
    stand.codeHost.clearFaults();
    // An explicit request starts it.
    assert.equal(await stand.cache.warm("org", name), "started");
    await stand.cache.settled();
    await clone("--mirror", `${name}-after`);
    assert.equal(stand.upstream("fetch"), 1);
  });

  it("a response that breaks off leaves the store unchanged, and counts as an error", async () => {
    stand.codeHost.inject({ path: new RegExp(name), command: "fetch", times: 1 }, { cutAfterBytes: 60 });
    assert.deepEqual(await change(() => stand.codeHost.push("org", name, { commits: 1 })), [0, 1]);
    await git(["-C", join(stand.storagePath, "org", `${name}.git`), "fsck", "--full"]);
    await clone("--mirror", `${name}-after`);
    assert.equal(await contentOf(stand.folder(`${name}-after`)), await contentOf(path));
  });

  it("warmed data gives nobody access [svc 4.8]", async () => {
    await change(() => stand.codeHost.push("org", name, { commits: 1 }));
    const tip = await git(["-C", path, "rev-parse", "HEAD"]);
    const fetch = command("fetch", [`want ${tip}`, "done"]);
    assert.equal((await stand.post(`org/${name}`, fetch)).status, 401);
    assert.equal((await stand.post(`org/${name}`, fetch, ada)).status, 200);
  });

  it("warm fills an empty store of any object format, and the first clone is a hit", async () => {
    const { path: other } = await stand.codeHost.addRepository("org", `${name}-256`, {
      build: (dir) => repositories.sha256(dir),
    });
    stand.list("org", `${name}-256`);
    assert.equal(await stand.cache.warm("org", `${name}-256`), "started");
    await stand.cache.settled();
    assert.equal(stand.upstream("fetch"), 1);
    const done = await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/${name}-256`, `${name}-256`]);
    assert.equal(done.code, 0, done.stderr);
    assert.equal(stand.upstream("fetch"), 1);
    assert.equal(await contentOf(stand.folder(`${name}-256`)), await contentOf(other));
  });

  it("a repository recreated under its name: the warming quarantines the old data", async () => {
    await stand.codeHost.remove("org", name);
    const anew = await stand.codeHost.addRepository("org", name, {
      private: true,
      build: (dir) => repositories.linear(dir, { seed: 5 }),
    });
    await stand.cache.warm("org", name);
    await stand.cache.settled();
    await stand.cache.warm("org", name);
    await stand.cache.settled();
    assert.equal(stand.cache.stats("org", name).responseFiles, 0);
    assert.equal(await contentOf(join(stand.storagePath, "org", `${name}.git`)), await contentOf(anew.path));
  });

  it("a disabled repository is not warmed, and warm reports it", async () => {
    stand.list("org", name, { enabled: false });
    await stand.codeHost.push("org", name, { commits: 1 });
    assert.equal(await stand.cache.warm("org", name), "not_cached");
    await stand.cache.settled();
    assert.equal(warmCalls("fetch"), 0);
  });
});

describe("warming without a token", () => {
  it("does not happen, and warm says why [svc 4.7]", async () => {
    const stand = await startStand({ listed: ["r"] });
    try {
      await stand.codeHost.addRepository("org", "r", { build: (dir) => repositories.linear(dir) });
      await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/r`, "first"]);
      await stand.cache.settled();
      stand.codeHost.resetCalls();
      await stand.codeHost.push("org", "r", { commits: 1 });
      await stand.post("org/r", HEADS);
      assert.equal(await stand.cache.warm("org", "r"), "no_credential");
      await stand.cache.settled();
      assert.equal(stand.codeHost.calls.length, 1);
    } finally {
      await stand.stop();
    }
  });
});

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { git } from "@devplat/testkit";
import { basic, command, gitServes, startStand, type Answer, type Stand } from "./svc-git-stand.ts";

const AUTH = { Authorization: basic("alice-token") };
const HIT = 'svc_cache_request_total{owner="org",repo="r",result="hit"}';
const sizeOf = (...oids: string[]): Buffer =>
  command("object-info", ["size", ...oids.map((oid) => `oid ${oid}`)]);

describe("object-info", { timeout: 180_000 }, () => {
  let stand: Stand;
  let path = "";
  let tip = "";
  /** Lines of `<oid> <size>`. */
  let objects: readonly string[] = [];
  before(async () => {
    // Each request asks the code host about the caller.
    stand = await startStand({ grantSeconds: 0, listed: ["r"] });
    stand.codeHost.addUser("alice", "alice-token");
    ({ path } = await stand.codeHost.addRepository("org", "r", { private: true }));
    // Stock git answers the command only where it offers it.
    await git(["-C", path, "config", "transfer.advertiseObjectInfo", "true"]);
    tip = await git(["-C", path, "rev-parse", "refs/heads/main"]);
    const format = "--batch-check=%(objectname) %(objectsize)";
    const reachable = await git(["-C", path, "rev-list", "--objects", "--no-object-names", "--all"]);
    objects = (await git(["-C", path, "cat-file", format], { input: `${reachable}\n` })).split("\n");
    const url = stand.url.replace("//", "//user:alice-token@");
    const cloned = await stand.git(["clone", "-q", "--mirror", `${url}/org/r`, "warm"]);
    assert.equal(cloned.code, 0, cloned.stderr);
    await stand.cache.settled();
  });
  after(() => stand.stop());

  const post = (body: Buffer, headers: Record<string, string> = AUTH): Promise<Answer> =>
    stand.post("org/r", body, headers);
  const asked = (): number => stand.upstream("object-info");

  it("of every object is answered from the mirror as git upload-pack does [svc 1.26]", async () => {
    const body = sizeOf(...objects.map((line) => line.slice(0, 40)));
    const hits = await stand.metric(HIT);
    stand.codeHost.resetCalls();
    const answer = await post(body);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers["x-svc-cache"], "hit");
    assert.equal(asked(), 0);
    assert.equal((await stand.metric(HIT)) - hits, 1);
    assert.ok(answer.body.equals(await gitServes(path, body)));
    assert.ok(objects.length > 10);
    for (const line of objects) assert.ok(answer.text.includes(line), line);
  });

  it("with an object that no ref shows is answered by the code host [svc 1.26]", async () => {
    const unshown = await git(["-C", path, "hash-object", "-w", "--stdin"], { input: "nobody shows this" });
    for (const oid of [unshown, "1".repeat(40)]) {
      stand.codeHost.resetCalls();
      const body = sizeOf(tip, oid);
      const answer = await post(body);
      assert.equal(answer.headers["x-svc-cache"], "miss");
      assert.equal(asked(), 1);
      assert.ok(answer.body.equals(await gitServes(path, body)));
    }
  });

  it("of a commit whose branch was deleted is not answered from the mirror", async () => {
    const tree = await git(["-C", path, "rev-parse", `${tip}^{tree}`]);
    const secret = await git(["-C", path, "commit-tree", "-m", "purged later", "-p", tip, tree]);
    await git(["-C", path, "update-ref", "refs/heads/secret", secret]);
    const url = stand.url.replace("//", "//user:alice-token@");
    const fetched = await stand.git(["-C", "warm", "fetch", "-q", `${url}/org/r`, "+refs/*:refs/*"]);
    assert.equal(fetched.code, 0, fetched.stderr);
    await stand.cache.settled();
    assert.equal((await post(sizeOf(secret))).headers["x-svc-cache"], "hit");
    await git(["-C", path, "update-ref", "-d", "refs/heads/secret"]);
    assert.equal((await post(command("ls-refs", []))).status, 200);
    stand.codeHost.resetCalls();
    assert.equal((await post(sizeOf(secret))).headers["x-svc-cache"], "miss");
    assert.equal(asked(), 1);
  });

  it("with what only the code host understands is forwarded", async () => {
    const line = `oid ${tip}`;
    for (const body of [
      command("object-info", ["size"]),
      command("object-info", ["size", "type", line]),
      command("object-info", ["size", `oid ${tip.slice(1)}`]),
      command("object-info", ["size", line], ["object-format=sha1", "server-option=x"]),
    ]) {
      stand.codeHost.resetCalls();
      assert.notEqual((await post(body)).headers["x-svc-cache"], "hit");
      assert.equal(asked(), 1);
    }
  });

  it("gets no byte without the code host's authorization, and not after a revocation", async () => {
    const body = sizeOf(tip);
    stand.codeHost.resetCalls();
    assert.equal((await post(body, {})).status, 401);
    const stranger = await post(body, { Authorization: basic("unknown-token") });
    assert.equal(stranger.status, 401);
    assert.ok(!stranger.text.includes(tip));
    assert.equal(asked(), 0);
    assert.equal((await post(body)).status, 200);
    stand.codeHost.inject({ command: "ls-refs", times: 1 }, { status: 401 });
    const revoked = await post(body);
    assert.equal(revoked.status, 401);
    assert.equal(revoked.headers["x-svc-cache"], "rejected");
    assert.equal(asked(), 0);
  });
});

it("object-info is forwarded with cache.strict_lsrefs", async () => {
  const stand = await startStand({ strictLsRefs: true, listed: ["r"] });
  try {
    const { path } = await stand.codeHost.addRepository("org", "r");
    const tip = await git(["-C", path, "rev-parse", "refs/heads/main"]);
    assert.equal((await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/r`, "warm"])).code, 128);
    const answer = await stand.post("org/r", sizeOf(tip));
    assert.equal(answer.headers["x-svc-cache"], "miss");
    assert.equal(stand.upstream("object-info"), 1);
  } finally {
    await stand.stop();
  }
});

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { encodeCapabilityAdvertisement } from "@devplat/git-protocol";
import { git } from "@devplat/testkit";
import { command, startStand, type Answer, type Stand } from "./svc-git-stand.ts";

const TOKEN = "plantedPromisorToken";
/** Capability of a code host that leaves out objects that another server has (gitprotocol-v2, "promisor-remote"). */
const OFFER = `name=lop,url=https%3A%2F%2Flop.example%2Frepo,token=${TOKEN};name=other,url=https%3A%2F%2Fother.example`;
const ADVERTISEMENT = encodeCapabilityAdvertisement({
  service: "git-upload-pack",
  capabilities: new Map([
    ["ls-refs", undefined],
    ["fetch", "shallow filter"],
    ["promisor-remote", OFFER],
    ["object-format", "sha1"],
  ]),
});
const RESULT = { "content-type": "application/x-git-upload-pack-result" };
const FORMAT = "object-format=sha1";

describe("the capability promisor-remote", { timeout: 120_000 }, () => {
  let stand: Stand;
  let tip = "";
  before(async () => {
    stand = await startStand({ listed: ["r"] });
    const { path } = await stand.codeHost.addRepository("org", "r");
    tip = await git(["-C", path, "rev-parse", "refs/heads/main"]);
    const cloned = await stand.git(["clone", "-q", "--bare", `${stand.url}/org/r`, "warm"]);
    assert.equal(cloned.code, 0, cloned.stderr);
    await stand.cache.settled();
  });
  after(() => stand.stop());

  const advertise = (): void =>
    stand.codeHost.inject(
      { path: /info\/refs/, times: 1 },
      {
        status: 200,
        headers: { "content-type": "application/x-git-upload-pack-advertisement" },
        body: ADVERTISEMENT,
      },
    );
  const fetchBody = (...capabilities: string[]): Buffer =>
    command("fetch", ["no-progress", `want ${tip}`, "done"], [FORMAT, ...capabilities]);
  const post = (...capabilities: string[]): Promise<Answer> =>
    stand.post("org/r", fetchBody(...capabilities));

  it("is passed on as the code host offers it, and stock git reads it", async () => {
    advertise();
    const answer = await stand.ask("/org/r/info/refs?service=git-upload-pack", {
      headers: { "Git-Protocol": "version=2" },
    });
    assert.ok(answer.body.equals(ADVERTISEMENT));
    advertise();
    const listed = await stand.git(["ls-remote", `${stand.url}/org/r`, "refs/heads/main"]);
    assert.deepEqual([listed.code, listed.stdout], [0, `${tip}\trefs/heads/main\n`]);
  });

  it("in a fetch reaches the code host, and its response is only for equal requests", async () => {
    const whole = await post();
    assert.equal(whole.headers["x-svc-cache"], "hit");
    for (const accepted of ["promisor-remote=lop", "promisor-remote=lop;other"]) {
      stand.codeHost.resetCalls();
      stand.codeHost.inject(
        { command: "fetch", times: 1 },
        { status: 200, headers: RESULT, body: whole.body },
      );
      const first = await post(accepted);
      assert.equal(first.headers["x-svc-cache"], "miss", accepted);
      assert.equal(stand.upstream("fetch"), 1);
      assert.ok(first.body.equals(whole.body));
      await stand.cache.settled();
      assert.equal((await post(accepted)).headers["x-svc-cache"], "hit", accepted);
      assert.equal(stand.upstream("fetch"), 1);
    }
  });

  it("a code host without it refuses a fetch that names one, which is relayed", async () => {
    const body = fetchBody("promisor-remote=unknown");
    const direct = await fetch(`${stand.codeHost.url}/org/r/git-upload-pack`, {
      method: "POST",
      body,
      headers: { "Content-Type": "application/x-git-upload-pack-request", "Git-Protocol": "version=2" },
    });
    const answer = await stand.post("org/r", body);
    assert.deepEqual([answer.status, answer.text], [direct.status, await direct.text()]);
    assert.doesNotMatch(answer.text, /PACK/);
  });

  it("its token is in no log, and in no file of the cache", async () => {
    advertise();
    await stand.ask("/org/r/info/refs?service=git-upload-pack", { headers: { "Git-Protocol": "version=2" } });
    // An advertisement that cannot be read is reported without its text.
    stand.codeHost.inject(
      { path: /info\/refs/, times: 1 },
      {
        status: 200,
        headers: { "content-type": "application/x-git-upload-pack-advertisement" },
        body: ADVERTISEMENT.subarray(0, -9),
      },
    );
    await stand.ask("/org/r/info/refs?service=git-upload-pack", { headers: { "Git-Protocol": "version=2" } });
    await post(`promisor-remote=${TOKEN}`);
    await stand.cache.settled();
    assert.ok(stand.access.length > 0);
    const logged = JSON.stringify([stand.log, stand.access], (_key, value: unknown) =>
      value instanceof Error ? { message: value.message, stack: value.stack } : value,
    );
    assert.ok(!logged.includes(TOKEN));
    const { body: metrics } = await stand.metrics.render();
    assert.ok(!metrics.includes(TOKEN));
    for (const entry of await readdir(stand.storagePath, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      assert.ok(!(await readFile(path)).includes(TOKEN), path);
    }
  });
});

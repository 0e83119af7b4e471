import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { git, repositories, until } from "@devplat/testkit";
import { MAIN, assertProblem, ensure, parsed } from "./svc-ensure-stand.ts";
import { basic, command, contentOf, startStand, type Stand } from "./svc-git-stand.ts";

/** A repository of its own for each test. */
describe("POST svc/ensure", { timeout: 300_000 }, () => {
  let stand: Stand;
  let name = "";
  let path = "";
  let tip = "";
  let count = 0;
  before(async () => {
    stand = await startStand({ grantSeconds: 30 });
  });
  beforeEach(async () => {
    name = `r${++count}`;
    stand.list("org", name);
    ({ path } = await stand.codeHost.addRepository("org", name, {
      build: (dir) => repositories.bigBlobs(dir, { blobs: 2, bytes: 500_000 }),
    }));
    tip = await git(["-C", path, "rev-parse", MAIN]);
    stand.codeHost.resetCalls();
  });
  afterEach(() => stand.codeHost.clearFaults());
  after(() => stand.stop());

  it("fills an empty mirror; then fetches cost the code host nothing", async () => {
    const answer = await ensure(stand, `org/${name}`, { [MAIN]: tip });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(parsed(answer), { state: "ready" });
    assert.equal(answer.headers["x-svc-cache"], "miss");
    assert.equal(stand.upstream("fetch"), 1);
    const address = `${stand.url}/org/${name}`;
    for (const args of [["--depth=1"], []]) {
      const folder = `${name}-${args.length}`;
      const cloned = await stand.git(["clone", "-q", "--bare", ...args, address, folder]);
      assert.equal(cloned.code, 0, cloned.stderr);
    }
    assert.equal(await contentOf(stand.folder(`${name}-0`)), await contentOf(path));
    await stand.git(["init", "-q", "--bare", `${name}-id`]);
    const fetched = await stand.git(["-C", `${name}-id`, "fetch", "-q", address, tip]);
    assert.equal(fetched.code, 0, fetched.stderr);
    assert.equal(stand.upstream("fetch"), 1);
  });

  it("asks the code host for exactly these names, with the caller's credential", async () => {
    for (const other of ["other", "release"]) await git(["-C", path, "branch", other, tip]);
    stand.codeHost.addUser("ada", "ada-token", { repositories: [`org/${name}`] });
    const headers = { Authorization: basic("ada-token") };
    await ensure(stand, `org/${name}`, { [MAIN]: tip, HEAD: tip }, { headers });
    const [asked] = stand.codeHost.calls.filter((call) => call.command === "ls-refs");
    assert.equal(asked?.authorization, basic("ada-token"));
    // Two lines of a length, an id and a name, and a flush-pkt.
    const lines = ["HEAD", MAIN].map((ref) => `0000${tip} ${ref}\n`);
    assert.equal(asked.bytesOut, lines.join("").length + "0000".length);
  });

  it("is a hit when the objects are here", async () => {
    await ensure(stand, `org/${name}`, { [MAIN]: tip });
    const again = await ensure(stand, `org/${name}`, { [MAIN]: tip });
    assert.equal(again.status, 200);
    assert.equal(again.headers["x-svc-cache"], "hit");
    assert.equal(stand.upstream("fetch"), 1);
    assert.equal(await stand.metric(`svc_cache_request_total{owner="org",repo="${name}",result="hit"}`), 0);
  });

  it("brings a push as one delta on what is here", async () => {
    await ensure(stand, `org/${name}`, { [MAIN]: tip });
    await stand.codeHost.push("org", name);
    const pushed = await git(["-C", path, "rev-parse", MAIN]);
    stand.codeHost.resetCalls();
    const answer = await ensure(stand, `org/${name}`, { [MAIN]: pushed });
    assert.equal(answer.status, 200, answer.text);
    const [fetch] = stand.codeHost.calls.filter((call) => call.command === "fetch");
    assert.ok((fetch?.bytesOut ?? Infinity) < 10_000);
  });

  it("answers 409 with the object that the code host shows, or null", async () => {
    const other = "1".repeat(40);
    const refs = { [MAIN]: other, "refs/heads/none": other, HEAD: tip };
    const answer = await ensure(stand, `org/${name}`, refs);
    assertProblem(answer, 409, "ref_moved");
    assert.deepEqual(parsed(answer)["refs"], { [MAIN]: tip, "refs/heads/none": null });
    assert.equal(answer.headers["x-svc-cache"], "rejected");
    assert.equal(stand.upstream("fetch"), 0);
  });

  it("takes the commit of an annotated tag as well as the tag", async () => {
    await git(["-C", path, "-c", "user.name=a", "-c", "user.email=a@a", "tag", "-a", "v1", "-m", "v1", tip]);
    const tag = await git(["-C", path, "rev-parse", "refs/tags/v1"]);
    for (const oid of [tip, tag]) {
      const answer = await ensure(stand, `org/${name}`, { "refs/tags/v1": oid });
      assert.equal(answer.status, 200, answer.text);
    }
  });

  it("20 concurrent callers cause one fetch", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ensure(stand, `org/${name}`, { [MAIN]: tip })),
    );
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
    assert.equal(stand.upstream("fetch"), 1);
  });

  it("answers 202 when the time is over, and the fetch goes on", async () => {
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject({ command: "fetch" }, { until: go.promise });
    const answer = await ensure(stand, `org/${name}`, { [MAIN]: tip }, { timeout: 0 });
    assert.equal(answer.status, 202, answer.text);
    assert.deepEqual(parsed(answer), { state: "pending" });
    assert.match(String(answer.headers["retry-after"]), /^\d+$/);
    go.resolve();
    stand.codeHost.clearFaults();
    assert.equal((await ensure(stand, `org/${name}`, { [MAIN]: tip })).status, 200);
    assert.equal(stand.upstream("fetch"), 1);
  });

  it("a caller that leaves does not stop the fetch for the rest", async () => {
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject({ command: "fetch" }, { until: go.promise });
    const outgoing = httpRequest(`${stand.url}/org/${name}.git/svc/ensure`, {
      method: "POST",
      agent: false,
      headers: { "Content-Type": "application/json" },
    });
    outgoing.on("error", () => undefined);
    outgoing.end(JSON.stringify({ refs: { [MAIN]: tip } }));
    await until(() => stand.upstream("fetch") === 1);
    const other = ensure(stand, `org/${name}`, { [MAIN]: tip });
    await until(() => stand.upstream("ls-refs") >= 2);
    const closed = new Promise((resolve) => outgoing.once("close", resolve));
    outgoing.destroy();
    await closed;
    go.resolve();
    stand.codeHost.clearFaults();
    assert.equal((await other).status, 200);
    assert.equal(stand.upstream("fetch"), 1);
  });

  it("a refused fetch is only for the caller whose credential was refused", async () => {
    stand.codeHost.addUser("ada", "ada-token");
    stand.codeHost.addUser("bob", "bob-token");
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject(
      { command: "fetch", times: 1 },
      { until: go.promise, status: 403, body: "no more" },
    );
    const first = ensure(
      stand,
      `org/${name}`,
      { [MAIN]: tip },
      { headers: { Authorization: basic("ada-token") } },
    );
    await until(() => stand.upstream("fetch") === 1);
    const second = ensure(
      stand,
      `org/${name}`,
      { [MAIN]: tip },
      { headers: { Authorization: basic("bob-token") } },
    );
    await until(() => stand.upstream("ls-refs") >= 2);
    go.resolve();
    const refused = await first;
    assert.equal(refused.status, 403);
    assert.equal(refused.text, "no more");
    assert.equal((await second).status, 200);
    stand.codeHost.clearFaults();
  });

  it("takes the objects of a clone that runs, and fetches nothing itself", async () => {
    const outgoing = httpRequest(`${stand.url}/org/${name}/git-upload-pack`, {
      method: "POST",
      agent: false,
      headers: { "Content-Type": "application/x-git-upload-pack-request", "Git-Protocol": "version=2" },
    });
    outgoing.end(command("fetch", [`want ${tip}`, "done"]));
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    response.resume();
    assert.equal((await ensure(stand, `org/${name}`, { [MAIN]: tip })).status, 200);
    assert.equal(stand.upstream("fetch"), 1);
  });

  it("replaces the mirror of another repository under the same name", async () => {
    await ensure(stand, `org/${name}`, { [MAIN]: tip });
    await stand.codeHost.remove("org", name);
    const made = await stand.codeHost.addRepository("org", name, {
      build: (dir) => repositories.linear(dir, { commits: 3 }),
    });
    const now = await git(["-C", made.path, "rev-parse", MAIN]);
    const answer = await ensure(stand, `org/${name}`, { [MAIN]: now });
    assert.equal(answer.status, 200, answer.text);
    const clone = await stand.git(["clone", "-q", "--bare", `${stand.url}/org/${name}`, `${name}-new`]);
    assert.equal(clone.code, 0, clone.stderr);
    assert.equal(await contentOf(stand.folder(`${name}-new`)), await contentOf(made.path));
  });

  it("is logged as a git request", async () => {
    await ensure(stand, `org/${name}`, { [MAIN]: tip });
    const line = stand.access.findLast(({ path: asked }) => String(asked).endsWith("/svc/ensure"));
    assert.equal(line?.["cache_state"], "miss");
    assert.equal(line?.["cache_repo"], `org/${name}`);
    assert.ok((await stand.metric('svc_cache_ensure_total{result="ready"}')) > 0);
  });

  describe("faults of the code host", () => {
    it("a code host that is down: 502 and a problem document", async () => {
      const away = await startStand({ listed: ["r"], hostUrl: "http://127.0.0.1:1" });
      try {
        assertProblem(await ensure(away, "org/r", { [MAIN]: tip }), 502, "host_unreachable");
      } finally {
        await away.stop();
      }
    });

    it("a transfer that breaks off: 502, and the next try is right", async () => {
      stand.codeHost.inject({ command: "fetch", times: 1 }, { cutAfterBytes: 100_000 });
      assertProblem(await ensure(stand, `org/${name}`, { [MAIN]: tip }), 502, "host_unreachable");
      assert.equal((await ensure(stand, `org/${name}`, { [MAIN]: tip })).status, 200);
    });

    it("a repository larger than cache.fill_max_mb: 507", async () => {
      const small = await startStand({ listed: ["big"], fillMaxMb: 1 });
      try {
        const { path: big } = await small.codeHost.addRepository("org", "big", {
          build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: 3 * 2 ** 20 }),
        });
        const oid = await git(["-C", big, "rev-parse", MAIN]);
        for (let tries = 0; tries < 2; tries++) {
          assertProblem(await ensure(small, "org/big", { [MAIN]: oid }), 507, "cannot_store");
        }
        assert.equal(small.upstream("fetch"), 1);
      } finally {
        await small.stop();
      }
    });

    for (const [title, fault] of [
      [
        "an ERR line in place of refs",
        {
          status: 200,
          headers: { "Content-Type": "application/x-git-upload-pack-result" },
          body: "000fERR denied\n",
        },
      ],
      ["a page", { status: 200, headers: { "Content-Type": "text/html" }, body: "<p>Welcome" }],
      ["a redirect", { status: 301, headers: { Location: "/org/other.git/git-upload-pack" } }],
    ] as const) {
      it(`${title} does not become a success`, async () => {
        stand.codeHost.inject({ command: "ls-refs", times: 1 }, fault);
        assertProblem(await ensure(stand, `org/${name}`, { [MAIN]: tip }), 502, "host_unreachable");
      });
    }
  });

  it("a repository with SHA-256 object ids", async () => {
    const made = await stand.codeHost.addRepository("org", "sha256", {
      build: async (dir) => {
        await git(["init", "-q", "--bare", "--object-format=sha256", "-b", "main", dir]);
        const tree = await git(["-C", dir, "mktree"]);
        const commit = await git([
          "-C",
          dir,
          "-c",
          "user.name=a",
          "-c",
          "user.email=a@a",
          "commit-tree",
          "-m",
          "one",
          tree,
        ]);
        await git(["-C", dir, "update-ref", MAIN, commit]);
      },
    });
    stand.list("org", "sha256");
    const oid = await git(["-C", made.path, "rev-parse", MAIN]);
    const answer = await ensure(stand, "org/sha256", { [MAIN]: oid });
    assert.equal(answer.status, 200, answer.text);
  });
});

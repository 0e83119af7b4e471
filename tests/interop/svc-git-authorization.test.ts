import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { encodeErrorLine } from "@devplat/git-protocol";
import { git, repositories, until } from "@devplat/testkit";
import { basic, command, contentOf, startStand, type Stand } from "./svc-git-stand.ts";

const AUTH = { Authorization: basic("alice-token") };
const OTHER = { Authorization: basic("bob-token") };
const FETCH_CAPABILITIES = ["object-format=sha1"];

/** A private repository whose clone is stored, and the exact bytes of the fetch that is answered from cache. */
async function warm(
  stand: Stand,
  name: string,
  template?: string,
): Promise<{ fetch: Buffer; oid: string; path: string }> {
  const { path } = await stand.codeHost.addRepository("org", name, {
    private: true,
    ...(template === undefined ? {} : { build: (dir: string) => cp(template, dir, { recursive: true }) }),
  });
  stand.codeHost.addUser("alice", "alice-token");
  stand.list("org", name);
  const oid = await git(["-C", path, "rev-parse", "refs/heads/main"]);
  const fetch = command("fetch", ["no-progress", `want ${oid}`, "done"], FETCH_CAPABILITIES);
  for (const state of ["miss", "hit"]) {
    await stand.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/"]), AUTH);
    const answer = await stand.post(`org/${name}`, fetch, AUTH);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers["x-svc-cache"], state);
    await stand.cache.settled();
  }
  stand.codeHost.resetCalls();
  return { fetch, oid, path };
}

describe("access check: no byte from the cache without an authorization by the code host", () => {
  let stand: Stand;
  let count = 0;
  let name = "";
  let warmed: Awaited<ReturnType<typeof warm>>;
  let template = "";
  before(async () => {
    stand = await startStand();
    template = (await stand.codeHost.addRepository("org", "template")).path;
  });
  beforeEach(async () => {
    name = `private-${++count}`;
    warmed = await warm(stand, name, template);
  });
  after(() => stand.stop());

  const rejected = (): Promise<number> =>
    stand.metric(`svc_cache_request_total{owner="org",repo="${name}",result="rejected"}`);

  it("an anonymous replay of a private repository's fetch gets the code host's 401 [svc 1.33]", async () => {
    const answer = await stand.post(`org/${name}`, warmed.fetch);
    assert.equal(answer.status, 401);
    assert.match(String(answer.headers["www-authenticate"]), /^Basic/);
    assert.doesNotMatch(answer.text, /PACK/);
    assert.equal(await rejected(), 1);
    assert.equal(stand.access.at(-1)?.["cache_state"], "rejected");
  });

  it("a credential without access gets 404, one with access a hit after its own probe [svc 1.8]", async () => {
    stand.codeHost.addUser("bob", "bob-token", { repositories: ["org/other"] });
    assert.equal((await stand.post(`org/${name}`, warmed.fetch, OTHER)).status, 404);
    stand.codeHost.addUser("bob", "bob-token", { repositories: [`org/${name}`] });
    stand.codeHost.resetCalls();
    const answer = await stand.post(`org/${name}`, warmed.fetch, OTHER);
    assert.equal(answer.headers["x-svc-cache"], "hit");
    assert.equal(stand.upstream("ls-refs"), 1);
    assert.equal(stand.upstream("fetch"), 0);
    assert.match(stand.codeHost.calls[0]?.headers["user-agent"] ?? "", /^svc\//);
  });

  it("an authorization lasts for its seconds, and a 401 of info/refs ends it [svc 1.5]", async () => {
    stand.codeHost.revoke("alice-token");
    assert.equal((await stand.post(`org/${name}`, warmed.fetch, AUTH)).headers["x-svc-cache"], "hit");
    const refs = await stand.ask(`/org/${name}.git/info/refs?service=git-upload-pack`, { headers: AUTH });
    assert.equal(refs.status, 401);
    const answer = await stand.post(`org/${name}`, warmed.fetch, AUTH);
    assert.equal(answer.status, 401);
    assert.doesNotMatch(answer.text, /PACK/);
  });

  it("a refused push ends the authorization too [svc 1.6]", async () => {
    stand.codeHost.setVisibility("org", name, "forbidden");
    const push = await stand.ask(`/org/${name}.git/info/refs?service=git-receive-pack`, { headers: AUTH });
    assert.equal(push.status, 403);
    assert.equal((await stand.post(`org/${name}`, warmed.fetch, AUTH)).status, 403);
  });

  it("a refused or missing archive or object deletes the authorization [svc 1.5]", async () => {
    const lsRefs = command("ls-refs", ["ref-prefix refs/heads/"]);
    const object = `objects/00/${"0".repeat(38)}`;
    stand.codeHost.resetCalls();
    assert.equal((await stand.ask(`/org/${name}.git/${object}`, { headers: AUTH })).status, 404);
    assert.equal((await stand.post(`org/${name}`, warmed.fetch, AUTH)).headers["x-svc-cache"], "hit");
    assert.equal(stand.upstream("ls-refs"), 1);
    for (const path of [object, "archive/main.tar.gz", `info/lfs/objects/${"0".repeat(64)}`]) {
      stand.codeHost.setVisibility("org", name, "private");
      assert.equal((await stand.post(`org/${name}`, lsRefs, AUTH)).status, 200);
      stand.codeHost.setVisibility("org", name, "forbidden");
      stand.codeHost.inject({ path: /archive|lfs/, times: 1 }, { status: 403, body: "" });
      assert.equal((await stand.ask(`/org/${name}.git/${path}`, { headers: AUTH })).status, 403, path);
      stand.codeHost.clearFaults();
      assert.equal((await stand.post(`org/${name}`, warmed.fetch, AUTH)).status, 403, path);
    }
  });

  it("external refusals on other routes do not affect an anonymous fetch [svc 1.6]", async () => {
    stand.codeHost.setVisibility("org", name, "public");
    await stand.cache.purge("org", name);
    await stand.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/"]));
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject({ command: "fetch", times: 1 }, { until: go.promise });
    const earlier = stand.planned();
    const fetches = [stand.post(`org/${name}`, warmed.fetch)];
    await until(() => stand.upstream("fetch") === 1);
    fetches.push(stand.post(`org/${name}`, warmed.fetch));
    await until(() => stand.planned() === earlier + 2);
    const push = await stand.ask(`/org/${name}.git/info/refs?service=git-receive-pack`);
    assert.equal(push.status, 401);
    const object = await stand.ask(`/org/${name}.git/objects/00/${"0".repeat(38)}`);
    assert.equal(object.status, 404);
    stand.codeHost.inject({ path: /info.refs/, times: 1 }, { status: 404, body: "" });
    assert.equal((await stand.ask(`/org/${name}.git/info/refs?service=git-upload-pack`)).status, 404);
    go.resolve();
    for (const { status, text } of await Promise.all(fetches)) {
      assert.equal(status, 200, text.slice(0, 100));
      assert.match(text, /PACK/);
    }
    stand.codeHost.clearFaults();
  });

  it("a caller refused while waiting for a fetch gets the code host's response [svc 2.21]", async () => {
    await stand.cache.purge("org", name);
    stand.codeHost.addUser("bob", "bob-token");
    await stand.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/"]), AUTH);
    await stand.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/"]), OTHER);
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject({ command: "fetch", times: 1 }, { until: go.promise });
    const earlier = stand.planned();
    const leader = stand.post(`org/${name}`, warmed.fetch, AUTH);
    await until(() => stand.upstream("fetch") === 1);
    const follower = stand.post(`org/${name}`, warmed.fetch, OTHER);
    await until(() => stand.planned() === earlier + 2);
    stand.codeHost.revoke("bob-token");
    await stand.ask(`/org/${name}.git/info/refs?service=git-upload-pack`, { headers: OTHER });
    go.resolve();
    assert.equal((await leader).status, 200);
    const refused = await follower;
    assert.equal(refused.status, 401);
    assert.match(String(refused.headers["www-authenticate"]), /^Basic/);
    assert.doesNotMatch(refused.text, /PACK/);
    stand.codeHost.clearFaults();
  });

  it("a renamed repository's old name gets the redirect, rewritten, and no bytes [svc 1.33]", async () => {
    stand.codeHost.rename("org", name, "org", `${name}-new`);
    const refs = await stand.ask(`/org/${name}.git/info/refs?service=git-upload-pack`, { headers: AUTH });
    assert.equal(refs.status, 301);
    assert.match(String(refs.headers.location), new RegExp(`^/org/${name}-new`));
    const lsRefs = await stand.post(`org/${name}`, command("ls-refs", []), AUTH);
    assert.equal(lsRefs.status, 301);
    stand.codeHost.addUser("bob", "bob-token");
    const answer = await stand.post(`org/${name}`, warmed.fetch, OTHER);
    assert.equal(answer.status, 301);
    assert.doesNotMatch(answer.text, /PACK/);
  });

  it("a recreated repository is not served from the old one's responses [svc 1.31]", async () => {
    await stand.codeHost.remove("org", name);
    await stand.codeHost.addRepository("org", name, {
      private: true,
      build: (dir) => repositories.linear(dir, { seed: 77, commits: 3 }),
    });
    stand.codeHost.addUser("bob", "bob-token", { repositories: [`org/${name}`] });
    const answer = await stand.post(`org/${name}`, warmed.fetch, OTHER);
    assert.doesNotMatch(answer.text, /PACK/);
    assert.equal(stand.upstream("fetch"), 1);
    // The first fetch of the new repository shows that it shares no history: all stored data is removed.
    const header = `http.extraHeader=Authorization: ${OTHER.Authorization}`;
    const mirror = ["clone", "-q", "--mirror", `${stand.url}/org/${name}`, "anew"];
    const bob = await stand.git(["-c", header, ...mirror]);
    assert.equal(bob.code, 0, bob.stderr);
    await stand.cache.settled();
    assert.equal(stand.cache.stats("org", name).responseFiles, 1);
    const store = join(stand.storagePath, "org", `${name}.git`);
    assert.equal(await contentOf(stand.folder("anew")), await contentOf(store));
  });

  it("a recreated repository is not served from old responses for unknown refs", async () => {
    await stand.codeHost.remove("org", name);
    await stand.codeHost.addRepository("org", name, {
      private: true,
      build: (dir) => repositories.linear(dir, { seed: 78, commits: 3 }),
    });
    stand.codeHost.addUser("bob", "bob-token", { repositories: [`org/${name}`] });
    const nothing = command("ls-refs", ["ref-prefix refs/heads/nope"]);
    const both = await stand.post(`org/${name}`, Buffer.concat([nothing, warmed.fetch]), OTHER);
    assert.doesNotMatch(both.text, /PACK/);
    const alone = await stand.post(`org/${name}`, warmed.fetch, OTHER);
    assert.doesNotMatch(alone.text, /PACK/);
    assert.equal(stand.upstream("fetch"), 2);
  });

  it("a coalesced fetch from before a repository was recreated is not joined", async () => {
    await stand.cache.purge("org", name);
    await stand.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/"]), AUTH);
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject({ command: "fetch", times: 1 }, { until: go.promise });
    const leader = stand.post(`org/${name}`, warmed.fetch, AUTH);
    await until(() => stand.upstream("fetch") === 1);
    const nothing = command("ls-refs", ["ref-prefix refs/heads/nope"]);
    stand.codeHost.addUser("bob", "bob-token");
    await stand.post(`org/${name}`, nothing, OTHER);
    await stand.post(`org/${name}`, warmed.fetch, OTHER);
    go.resolve();
    assert.equal((await leader).status, 200);
    stand.codeHost.clearFaults();
    assert.equal(stand.upstream("fetch"), 2);
  });

  it("a want that is not a tip any more is forwarded, though its response is stored [svc 1.29]", async () => {
    await stand.codeHost.push("org", name, { commits: 2 });
    await stand.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/"]), AUTH);
    const answer = await stand.post(`org/${name}`, warmed.fetch, AUTH);
    assert.equal(answer.headers["x-svc-cache"], "miss");
    assert.equal(stand.upstream("fetch"), 1);
  });

  it("a public repository turned private stops serving external callers [svc 1.33]", async () => {
    stand.codeHost.setVisibility("org", name, "public");
    assert.equal((await stand.post(`org/${name}`, warmed.fetch)).headers["x-svc-cache"], "hit");
    stand.codeHost.setVisibility("org", name, "private");
    assert.equal((await stand.post(`org/${name}`, warmed.fetch)).status, 401);
  });

  it("concurrent fetches without ls-refs of one credential share one probe [svc 1.16]", async () => {
    stand.codeHost.addUser("bob", "bob-token");
    stand.codeHost.inject({ command: "ls-refs" }, { delayMs: 150 });
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => stand.post(`org/${name}`, warmed.fetch, OTHER)),
    );
    stand.codeHost.clearFaults();
    assert.deepEqual(new Set(answers.map((answer) => answer.headers["x-svc-cache"])), new Set(["hit"]));
    assert.equal(stand.upstream("ls-refs"), 1);
  });

  const noYes: [string, Parameters<Stand["codeHost"]["inject"]>[1], number][] = [
    ["500", { status: 500, body: "broken" }, 500],
    ["429", { status: 429, headers: { "retry-after": "7" }, body: "slow down" }, 429],
    ["302", { status: 302, headers: { location: "/login" }, body: "" }, 302],
    ["200 with an empty body", { status: 200, body: "" }, 200],
    [
      "200 with a page",
      { status: 200, headers: { "content-type": "text/html" }, body: "<b>log in</b>" },
      200,
    ],
    [
      "200 with ERR",
      {
        status: 200,
        headers: { "content-type": "application/x-git-upload-pack-result" },
        body: encodeErrorLine("no access"),
      },
      200,
    ],
    [
      "200 with a flush-pkt but foreign lines",
      {
        status: 200,
        headers: { "content-type": "application/x-git-upload-pack-result" },
        body: "000bfoobar\n0000",
      },
      200,
    ],
    [
      "200 with an answer that has no flush-pkt",
      {
        status: 200,
        headers: { "content-type": "application/x-git-upload-pack-result" },
        body: `003d${"a".repeat(40)} refs/heads/main\n`,
      },
      200,
    ],
  ];
  for (const [title, fault, status] of noYes) {
    it(`an ls-refs with ${title} is not an authorization: relayed, nothing cached [svc 1.3 10.1]`, async () => {
      const fresh = { Authorization: basic("carol-token") };
      stand.codeHost.addUser("carol", "carol-token");
      stand.codeHost.inject({ command: "ls-refs" }, fault);
      try {
        const lsRefs = await stand.post(`org/${name}`, command("ls-refs", []), fresh);
        assert.equal(lsRefs.status, status);
        assert.doesNotMatch(String(lsRefs.headers["content-type"]), /html/);
        const fetch = await stand.post(`org/${name}`, warmed.fetch, fresh);
        assert.equal(fetch.status, status);
        assert.doesNotMatch(fetch.text, /PACK/);
        assert.equal(stand.upstream("fetch"), 0);
      } finally {
        stand.codeHost.clearFaults();
      }
    });
  }

  it("a body with ls-refs before fetch gets both answers, from one forwarded ls-refs [svc 1.23]", async () => {
    const body = Buffer.concat([command("ls-refs", ["ref-prefix refs/heads/"]), warmed.fetch]);
    const answer = await stand.post(`org/${name}`, body, AUTH);
    assert.equal(answer.status, 200);
    assert.match(answer.text, new RegExp(`^[0-9a-f]{4}${warmed.oid} refs/heads/main`));
    assert.match(answer.text, /0000000dpackfile\n/);
    assert.equal(stand.upstream("ls-refs"), 1);
    assert.equal(stand.upstream("fetch"), 0);
  });

  it("a body with ls-refs before fetch is refused as the code host refuses the ls-refs [svc 1.23]", async () => {
    const body = Buffer.concat([command("ls-refs", []), warmed.fetch]);
    const answer = await stand.post(`org/${name}`, body);
    assert.equal(answer.status, 401);
    assert.doesNotMatch(answer.text, /PACK/);
    assert.equal(await rejected(), 1);
  });

  it("a fetch placed before its ls-refs gets 200 with one ERR packet, and is rejected [svc 1.24]", async () => {
    const body = Buffer.concat([warmed.fetch, command("ls-refs", [])]);
    const answer = await stand.post(`org/${name}`, body, AUTH);
    assert.equal(answer.status, 200);
    assert.equal(answer.text, encodeErrorLine("fetch needs a preceding ls-refs").toString());
    assert.equal(answer.headers["x-svc-cache"], "rejected");
    assert.equal(stand.codeHost.calls.length, 0);
    assert.equal(await rejected(), 1);
  });

  it("a single flush-pkt is forwarded and records no authorization [svc 1.25]", async () => {
    const fresh = { Authorization: basic("dave-token") };
    stand.codeHost.addUser("dave", "dave-token");
    assert.equal((await stand.post(`org/${name}`, Buffer.from("0000"), fresh)).status, 200);
    assert.equal(stand.upstream("flush"), 1);
    await stand.post(`org/${name}`, warmed.fetch, fresh);
    assert.equal(stand.upstream("ls-refs"), 1);
    assert.equal((await stand.post(`org/${name}`, Buffer.from("0000"))).status, 401);
  });

  it("a well-formed body with another command is forwarded, outcome passthrough [svc 1.26]", async () => {
    await stand.post(`org/${name}`, command("bundle-uri", []), AUTH);
    assert.equal(stand.upstream("bundle-uri"), 1);
    const series = `svc_cache_request_total{owner="org",repo="${name}",result="passthrough"}`;
    assert.equal(await stand.metric(series), 1);
  });

  it("git fetch of a commit by id works with a credential and fails without", async () => {
    const url = stand.url.replace("//", "//user:alice-token@");
    await stand.git(["init", "-q", "--bare", name]);
    const good = await stand.git(["-C", name, "fetch", "-q", `${url}/org/${name}`, warmed.oid]);
    assert.equal(good.code, 0, good.stderr);
    const bad = await stand.git(["-C", name, "fetch", "-q", `${stand.url}/org/${name}`, warmed.oid]);
    assert.notEqual(bad.code, 0);
  });
});

describe("access check: without kept authorizations", () => {
  it("grant_seconds 0 probes before the fetch is planned and before its first byte [svc 1.9]", async () => {
    const stand = await startStand({ grantSeconds: 0 });
    try {
      const { fetch } = await warm(stand, "r");
      assert.equal((await stand.post("org/r", fetch, AUTH)).headers["x-svc-cache"], "hit");
      assert.equal(stand.upstream("ls-refs"), 2);
      stand.codeHost.revoke("alice-token");
      assert.equal((await stand.post("org/r", fetch, AUTH)).status, 401);
    } finally {
      await stand.stop();
    }
  });

  it("a probe records no authorization: the next fetch without ls-refs probes again [svc 1.12]", async () => {
    const stand = await startStand();
    try {
      const { fetch } = await warm(stand, "r");
      stand.codeHost.addUser("bob", "bob-token");
      assert.equal((await stand.post("org/r", fetch, OTHER)).headers["x-svc-cache"], "hit");
      stand.codeHost.revoke("bob-token");
      assert.equal((await stand.post("org/r", fetch, OTHER)).status, 401);
    } finally {
      await stand.stop();
    }
  });

  it("tips older than tips_seconds serve nothing until the code host confirms them [svc 1.30]", async () => {
    const stand = await startStand({ tipsSeconds: 2 });
    try {
      const same = await warm(stand, "same");
      const purged = await warm(stand, "purged");
      await git(["-C", purged.path, "update-ref", "refs/heads/main", "main~2"]);
      await sleep(2100);
      assert.equal((await stand.post("org/purged", purged.fetch, AUTH)).headers["x-svc-cache"], "miss");
      const asked = stand.upstream("ls-refs");
      assert.equal((await stand.post("org/same", same.fetch, AUTH)).headers["x-svc-cache"], "hit");
      assert.equal(stand.upstream("ls-refs"), asked + 1);
    } finally {
      await stand.stop();
    }
  });

  it("cache.strict_lsrefs rejects every fetch without an ls-refs before it in its body [svc 1.22 10.2]", async () => {
    const stand = await startStand({ strictLsRefs: true });
    try {
      await stand.codeHost.addRepository("org", "r");
      stand.list("org", "r");
      const lsRefs = await stand.post("org/r", command("ls-refs", ["ref-prefix refs/heads/"]));
      const oid = lsRefs.text.slice(4, 44);
      const fetch = command("fetch", [`want ${oid}`, "done"]);
      const lone = await stand.post("org/r", fetch);
      assert.equal(lone.text, encodeErrorLine("fetch needs a preceding ls-refs").toString());
      const both = await stand.post("org/r", Buffer.concat([command("ls-refs", []), fetch]));
      assert.match(both.text, /PACK/);
    } finally {
      await stand.stop();
    }
  });

  it("a client address over its share of probes gets 429 [svc 1.17]", async () => {
    const stand = await startStand({ probesPerMinute: 2 });
    try {
      const { fetch } = await warm(stand, "r");
      const fresh = { Authorization: basic("erin-token") };
      stand.codeHost.addUser("erin", "erin-token");
      const statuses: number[] = [];
      for (let n = 0; n < 3; n++) statuses.push((await stand.post("org/r", fetch, fresh)).status);
      assert.deepEqual(statuses, [200, 200, 429]);
    } finally {
      await stand.stop();
    }
  });

  it("data from another code host is quarantined [svc 1.28]", async () => {
    const first = await startStand();
    try {
      const { fetch } = await warm(first, "r");
      const second = await startStand({ storagePath: first.storagePath });
      try {
        await second.codeHost.addRepository("org", "r");
        second.list("org", "r");
        await second.post("org/r", command("ls-refs", []));
        assert.equal((await second.post("org/r", fetch)).headers["x-svc-cache"], "miss");
      } finally {
        await second.stop();
      }
    } finally {
      await first.stop();
    }
  });
});

describe("access check: with stock git", () => {
  it("a private repository is cloned, and a second credential is authorized itself", async () => {
    const stand = await startStand();
    try {
      await stand.codeHost.addRepository("org", "secret", { private: true });
      stand.codeHost.addUser("alice", "alice-token");
      stand.list("org", "secret");
      const as = (token: string): string => `${stand.url.replace("//", `//user:${token}@`)}/org/secret`;
      assert.equal((await stand.git(["clone", "-q", "--mirror", as("alice-token"), "a"])).code, 0);
      const anonymous = await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/secret`, "b"]);
      assert.notEqual(anonymous.code, 0);
      const revoked = await stand.git(["clone", "-q", "--mirror", as("nobody-token"), "c"]);
      assert.notEqual(revoked.code, 0);
      stand.codeHost.addUser("bob", "bob-token");
      stand.codeHost.resetCalls();
      assert.equal((await stand.git(["clone", "-q", "--mirror", as("bob-token"), "d"])).code, 0);
      assert.equal(stand.upstream("fetch"), 0);
      assert.equal(await contentOf(stand.folder("d")), await contentOf(stand.folder("a")));
    } finally {
      await stand.stop();
    }
  });
});

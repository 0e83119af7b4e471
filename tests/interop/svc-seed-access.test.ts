import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { encodeErrorLine } from "@devplat/git-protocol";
import { git, repositories, type Fault } from "@devplat/testkit";
import { ForwardClock } from "./forward-clock.ts";
import { assertProblem } from "./svc-ensure-stand.ts";
import { PROXY_TOKEN, basic, command, startStand, type Answer, type Stand } from "./svc-git-stand.ts";
import { FILES, askFile, askSeed, makeSeed, manifestOf, type Manifest } from "./svc-seed-stand.ts";

const OWNER = { Authorization: basic("owner-token") };
const LEAVER = { Authorization: basic("leaver-token") };
const SECRET = "org/secret-filled";

/** Everything of a response that may not differ. */
function visible({ status, headers, text }: Answer): unknown {
  const { date, "x-request-id": id, "server-timing": timing, ...rest } = headers;
  assert.ok(date !== undefined && id !== undefined && timing !== undefined);
  return { status, headers: rest, text };
}

/** Whether the access check takes a response of the code host for a refusal. */
function isRefused({ status, body = "" }: Fault): boolean {
  return status === 302 || status === 403 || Buffer.from(body).includes("ERR");
}

/** Asserts that there is no seed for a caller whom nobody refused. */
function assertNoSeed(answer: Answer, reason: RegExp): void {
  assertProblem(answer, 404, "no_seed");
  const { detail } = JSON.parse(answer.text) as { detail: string };
  assert.match(detail, reason);
  assert.equal(answer.headers["x-svc-cache"], "miss");
}

const rounds: [string, number][] = [
  ["with the default of grant_seconds", 5],
  ["with grant_seconds 0", 0],
];
for (const [title, grantSeconds] of rounds) {
  describe(`access check of svc/seed, ${title}`, { timeout: 300_000 }, () => {
    let stand: Stand;
    let manifest: Manifest;
    before(async () => {
      stand = await startStand({ grantSeconds });
      stand.codeHost.addUser("owner", "owner-token");
      stand.codeHost.addUser("outsider", "outsider-token", { repositories: ["org/elsewhere"] });
      for (const name of ["secret-filled", "secret-unlisted", "secret-disabled"]) {
        await stand.codeHost.addRepository("org", name, { private: true });
      }
      stand.list("org", "secret-filled", { bundles: true });
      stand.list("org", "secret-disabled", { enabled: false, bundles: true });
      manifest = await makeSeed(stand, SECRET, OWNER);
    });
    after(() => stand.stop());

    /** One request for the manifest, one for each file, and one for the bundle. */
    const askAll = async (repository: string, headers: Record<string, string>): Promise<Answer[]> => {
      const answers = [await askSeed(stand, repository, headers)];
      for (const key of FILES) answers.push(await askFile(stand, repository, manifest[key].name, headers));
      const bundle = manifest.pack.name.replace(/pack$/, "bundle");
      answers.push(await askFile(stand, repository, bundle, headers));
      return answers;
    };

    for (const [who, headers, status] of [
      ["anonymous", {}, 401],
      ["another repository's token", { Authorization: basic("outsider-token") }, 404],
      ["an unknown credential", { Authorization: basic("made-up") }, 401],
    ] as const) {
      it(`${who}: the code host's ${status} in every case, and no word of the cache`, async () => {
        const [first, ...others] = [
          ...(await askAll(SECRET, headers)),
          ...(await askAll("org/secret-disabled", headers)),
          ...(await askAll("org/secret-unlisted", headers)),
          ...(await askAll("org/secret-missing", headers)),
        ];
        assert.equal(first?.status, status);
        assert.equal(first.headers["x-svc-cache"], "rejected");
        for (const answer of others) assert.deepEqual(visible(answer), visible(first));
        if (status === 401) assert.match(String(first.headers["www-authenticate"]), /^Basic/);
      });
    }

    it("a credential that was revoked after the manifest gets no file [svc 1.10]", async () => {
      stand.codeHost.addUser("leaver", "leaver-token");
      const { pack } = manifestOf(await askSeed(stand, SECRET, LEAVER));
      assert.equal((await askFile(stand, SECRET, pack.name, LEAVER)).status, 200);
      stand.codeHost.revoke("leaver-token");
      if (grantSeconds === 0) assert.equal((await askFile(stand, SECRET, pack.name, LEAVER)).status, 401);
      // Any refusal of a request that reads ends the authorization.
      assert.equal((await askSeed(stand, SECRET, LEAVER)).status, 401);
      const range = { ...LEAVER, Range: "bytes=0-9" };
      assert.equal((await askFile(stand, SECRET, pack.name, range)).status, 401);
    });

    it("a response without a list of refs gives nothing", async () => {
      const type = { "Content-Type": "application/x-git-upload-pack-result" };
      for (const [fault, status] of [
        [{ status: 200, body: "<html>sign in</html>", headers: { "Content-Type": "text/html" } }, 502],
        [{ status: 200, body: "", headers: type }, 502],
        [{ status: 200, body: encodeErrorLine("access denied"), headers: type }, 502],
        [{ status: 302, headers: { Location: "https://other.example/" } }, 502],
        [{ status: 403, body: "no" }, 403],
        [{ status: 429, body: "slower" }, 429],
        [{ status: 500, body: "broken" }, 500],
      ] as const) {
        stand.codeHost.inject({ command: "ls-refs" }, fault);
        const [seed, ...files] = await askAll(SECRET, OWNER);
        stand.codeHost.clearFaults();
        // A response that refuses nobody leaves what is remembered for grant_seconds.
        const isRemembered = grantSeconds > 0 && !isRefused(fault);
        for (const answer of isRemembered ? [seed] : [seed, ...files]) {
          assert.equal(answer?.status, status, JSON.stringify(fault));
          assert.doesNotMatch(answer.text, /PACK|object_format/);
        }
      }
      assert.equal((await askSeed(stand, SECRET, OWNER)).status, 200);
    });

    it("with access, unlisted and disabled repositories are 404 problems", async () => {
      for (const [name, reason] of [
        ["secret-unlisted", /is not in the list of cached repositories/],
        ["secret-disabled", /Caching of this repository is disabled/],
      ] as const) {
        for (const answer of await askAll(`org/${name}`, OWNER)) assertNoSeed(answer, reason);
      }
    });

    it("a token of this service needs contents:read", async () => {
      stand.actions.length = 0;
      const headers = { Authorization: basic("svcx_another") };
      for (const answer of await askAll(SECRET, headers)) assertProblem(answer, 401, "unauthorized");
      const action = { owner: "org", name: "secret-filled", resource: "contents", level: "read" };
      assert.deepEqual(
        stand.actions,
        Array.from({ length: FILES.length + 2 }, () => action),
      );
    });

    it("paths that are almost those of a file are not served", async () => {
      const { name } = manifest.pack;
      for (const path of [
        `svc/seed/../seed/${name}`,
        `svc/seed/%2e%2e%2f${name}`,
        `svc/seed//${name}`,
        `svc/seed/${name}.json`,
        `svc/seed/${name.replace(".pack", ".bitmap")}`,
        `svc/seed/seed.json`,
        `svc/seed/${name.toUpperCase()}`,
        `svc/seed/${name.replace(".pack", "")}/${name}`,
      ]) {
        const { headers, text } = await stand.ask(`/${SECRET}.git/${path}`, { headers: OWNER });
        assert.notEqual(headers["content-type"], "application/octet-stream", path);
        assert.notEqual(headers["x-svc-cache"], "hit", path);
        assert.doesNotMatch(text, /PACK/);
      }
    });

    it("the new owner of a re-created repository gets nothing of the old one", async () => {
      await stand.codeHost.addRepository("org", "reborn", {
        build: (dir) => repositories.linear(dir, { commits: 9 }),
      });
      stand.list("org", "reborn");
      const old = await makeSeed(stand, "org/reborn");
      await stand.codeHost.remove("org", "reborn");
      const { path } = await stand.codeHost.addRepository("org", "reborn", {
        build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: 1000 }),
      });
      assert.notEqual(await git(["-C", path, "rev-parse", "main"]), old.tips[0]);
      assert.equal((await askSeed(stand, "org/reborn")).status, 404);
      const file = await askFile(stand, "org/reborn", old.pack.name);
      assert.ok([404, 410].includes(file.status), String(file.status));
    });
  });
}

describe("the tips of a seed", { timeout: 300_000 }, () => {
  const clock = new ForwardClock();
  const TIPS_SECONDS = 600;
  let stand: Stand;
  let count = 0;
  let name = "";
  let path = "";
  before(async () => {
    stand = await startStand({ clock, cacheClock: clock, grantSeconds: 5, tipsSeconds: TIPS_SECONDS });
  });
  after(() => stand.stop());

  /** A repository with an old branch that main does not reach. */
  const withBranch = async (): Promise<Manifest> => {
    name = `r${++count}`;
    ({ path } = await stand.codeHost.addRepository("org", name, {
      build: (dir) => repositories.linear(dir, { commits: 9 }),
    }));
    await git(["-C", path, "branch", "side", "main"]);
    await git(["-C", path, "update-ref", "refs/heads/main", "main~3"]);
    stand.list("org", name);
    return makeSeed(stand, `org/${name}`);
  };
  const drop = async (branch: string): Promise<void> => {
    await git(["-C", path, "update-ref", "-d", `refs/heads/${branch}`]);
  };
  const part = (manifest: Manifest, first: number): Promise<Answer> =>
    askFile(stand, `org/${name}`, manifest.pack.name, { Range: `bytes=${first}-${first + 9}` });

  it("a branch purged after the manifest: 410 from the next ls-refs on [svc 12.4]", async () => {
    const manifest = await withBranch();
    assert.equal((await part(manifest, 0)).status, 206);
    await drop("side");
    // Nobody has asked since. Recent refs count.
    assert.equal((await part(manifest, 10)).status, 206);
    await stand.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/"]));
    assertProblem(await part(manifest, 20), 410, "not_shown");
    assertProblem(await part(manifest, 20), 410, "not_shown");
    const again = await askSeed(stand, `org/${name}`);
    assert.equal(again.status, 404);
    assert.ok(Number(again.headers["retry-after"]) > 0);
  });

  it("a branch purged during a download: 410 at the latest after tips_seconds", async () => {
    const manifest = await withBranch();
    assert.equal((await part(manifest, 0)).status, 206);
    await drop("side");
    clock.advance(TIPS_SECONDS * 1000 + 1);
    assertProblem(await part(manifest, 10), 410, "not_shown");
  });

  it("the seed after a purge is made after ten minutes, without the purged branch", async () => {
    const manifest = await withBranch();
    await drop("side");
    assert.equal((await askSeed(stand, `org/${name}`)).status, 404);
    await stand.cache.settled();
    assert.equal((await askSeed(stand, `org/${name}`)).status, 404, "too soon");
    clock.advance(10 * 60_000);
    assert.equal((await askSeed(stand, `org/${name}`)).status, 404);
    await stand.cache.settled();
    const next = manifestOf(await askSeed(stand, `org/${name}`));
    assert.deepEqual(Object.keys(next.refs), ["refs/heads/main"]);
    assert.ok(next.pack.objects < manifest.pack.objects);
    assertProblem(await part(manifest, 0), 410, "not_shown");
  });

  it("a download of 15 minutes ends, and concurrent ranges share one ls-refs", async () => {
    const manifest = await withBranch();
    const first = await part(manifest, 0);
    assert.equal(first.status, 206);
    clock.advance(15 * 60_000);
    stand.codeHost.resetCalls();
    const parts = await Promise.all([10, 20, 30, 40, 50, 60].map((at) => part(manifest, at)));
    assert.deepEqual(
      parts.map(({ status }) => status),
      [206, 206, 206, 206, 206, 206],
    );
    // Those of the access check of a fetch ask for HEAD alone, and have a shorter body.
    const sizes = stand.codeHost.calls
      .filter((call) => call.command === "ls-refs")
      .map(({ bytesIn }) => bytesIn);
    assert.equal(sizes.filter((size) => size === Math.max(...sizes)).length, 1);
  });

  it("a download goes on over a push, also if nobody has fetched it [svc 12.5]", async () => {
    const manifest = await withBranch();
    assert.equal((await part(manifest, 0)).status, 206);
    await stand.codeHost.push("org", name, { commits: 2 });
    await stand.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/"]));
    const next = await part(manifest, 10);
    assert.equal(next.status, 206, next.text);
    assert.equal((await askSeed(stand, `org/${name}`)).status, 200);
  });

  it("a caller to whom the code host shows fewer refs gets no seed [svc 12.3]", async () => {
    const manifest = await withBranch();
    const seen = await stand.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/main"]));
    assert.match(seen.text, /refs\/heads\/main/);
    const type = { "Content-Type": "application/x-git-upload-pack-result" };
    stand.codeHost.inject({ command: "ls-refs" }, { status: 200, body: seen.body, headers: type });
    const headers = { Authorization: basic("narrow") };
    const answer = await askSeed(stand, `org/${name}`, headers);
    assert.equal(answer.status, 404, answer.text);
    const file = await askFile(stand, `org/${name}`, manifest.pack.name, headers);
    assertProblem(file, 410, "not_shown");
    stand.codeHost.clearFaults();
  });

  it("a seed is made again when more than 5 % is new, once in an hour [svc 12.6]", async () => {
    const manifest = await withBranch();
    await stand.codeHost.push("org", name, { commits: 4 });
    const ask = async (): Promise<string> => {
      const answer = await askSeed(stand, `org/${name}`);
      await stand.cache.settled();
      return manifestOf(answer).pack.name;
    };
    assert.equal(await ask(), manifest.pack.name);
    assert.equal(await ask(), manifest.pack.name, "too soon");
    clock.advance(60 * 60_000);
    assert.equal(await ask(), manifest.pack.name, "the mirror does not have the new commits");
    await stand.git(["clone", "-q", "--bare", `${stand.url}/org/${name}`, stand.folder(`again-${name}`)]);
    await stand.cache.settled();
    const next = await ask();
    assert.notEqual(next, manifest.pack.name);
    // The last but one is kept.
    assert.equal((await part(manifest, 0)).status, 206);
    clock.advance(60 * 60_000);
    await ask();
    assert.equal(await ask(), next, "nothing is new");
  });
});

it("seeds of a repository that are switched off are 404", { timeout: 60_000 }, async () => {
  const stand = await startStand({ listed: ["r"] });
  try {
    await stand.codeHost.addRepository("org", "r", { private: true });
    stand.codeHost.addUser("owner", "owner-token");
    const { pack } = await makeSeed(stand, "org/r", OWNER);
    stand.list("org", "r", { seed: false });
    const reason = /Seeds of this repository are switched off/;
    assertNoSeed(await askSeed(stand, "org/r", OWNER), reason);
    assertNoSeed(await askFile(stand, "org/r", pack.name, OWNER), reason);
    // Before the code host has authorized a caller, nothing is said.
    assert.equal((await askFile(stand, "org/r", pack.name)).status, 401);
  } finally {
    await stand.stop();
  }
});

it(
  "seeds are off with strict_lsrefs, and no request reaches the code host",
  { timeout: 60_000 },
  async () => {
    const stand = await startStand({ listed: ["r"], strictLsRefs: true });
    try {
      await stand.codeHost.addRepository("org", "r");
      const reason = /cache\.strict_lsrefs is on/;
      assertNoSeed(await askSeed(stand, "org/r"), reason);
      assertNoSeed(await askFile(stand, "org/r", `pack-${"0".repeat(40)}.pack`), reason);
      assert.equal(stand.codeHost.calls.length, 0);
    } finally {
      await stand.stop();
    }
  },
);

it("a seed is answered with the renewed credential behind a proxy token", { timeout: 60_000 }, async () => {
  const stand = await startStand({ listed: ["r"], renewed: basic("fresh-token") });
  try {
    await stand.codeHost.addRepository("org", "r", { private: true });
    stand.codeHost.addUser("alice", "fresh-token");
    await makeSeed(stand, "org/r", { Authorization: basic("fresh-token") });
    const headers = { Authorization: basic(PROXY_TOKEN) };
    const { pack } = manifestOf(await askSeed(stand, "org/r", headers));
    assert.equal((await askFile(stand, "org/r", pack.name, headers)).status, 200);
  } finally {
    await stand.stop();
  }
});

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { git, repositories, until } from "@devplat/testkit";
import { basic, startStand, type Answer, type Stand } from "./svc-git-stand.ts";
import { FILES, askFile, askSeed, makeSeed, type Manifest } from "./svc-seed-stand.ts";

const OWNER = { Authorization: basic("owner-token") };
const OTHER = { Authorization: basic("other-token") };

/** The attacks of svc-git-authorization.test.ts, against the addresses of seeds. */
describe("attacks on the addresses of seeds", { timeout: 300_000 }, () => {
  let stand: Stand;
  let name = "";
  /** The repository at the code host. */
  let path = "";
  let manifest: Manifest;
  let count = 0;
  before(async () => {
    stand = await startStand();
  });
  after(() => stand.stop());

  const newRepository = async (): Promise<void> => {
    name = `r${++count}`;
    stand.codeHost.addUser("owner", "owner-token");
    stand.codeHost.addUser("other", "other-token");
    ({ path } = await stand.codeHost.addRepository("org", name, {
      private: true,
      build: (dir) => repositories.linear(dir, { commits: 8, seed: count }),
    }));
    stand.list("org", name);
    manifest = await makeSeed(stand, `org/${name}`, OWNER);
  };
  const askAll = async (headers: Record<string, string>): Promise<Answer[]> => {
    const answers: Answer[] = [];
    for (const key of FILES) answers.push(await askFile(stand, `org/${name}`, manifest[key].name, headers));
    answers.push(await askSeed(stand, `org/${name}`, headers));
    return answers;
  };
  /** No word of a seed in any response. */
  const assertClosed = (answers: readonly Answer[], statuses: readonly number[]): void => {
    for (const { status, headers, text } of answers) {
      assert.ok(statuses.includes(status), `${status}: ${text.slice(0, 200)}`);
      assert.notEqual(headers["content-type"], "application/octet-stream");
      assert.notEqual(headers["x-svc-cache"], "hit");
      assert.doesNotMatch(text, /PACK|object_format|pack-/);
    }
  };
  const refs = "info/refs?service=git-upload-pack";

  for (const [title, route] of [
    ["a refused info/refs", refs],
    ["a refused push", "info/refs?service=git-receive-pack"],
    ["a refused archive", "archive/main.tar.gz"],
    ["a refused large file", `info/lfs/objects/${"0".repeat(64)}`],
  ] as const) {
    it(`${title} ends the authorization for files [svc 1.5 1.6]`, async () => {
      await newRepository();
      assert.equal((await askFile(stand, `org/${name}`, manifest.idx.name, OWNER)).status, 200);
      stand.codeHost.setVisibility("org", name, "forbidden");
      if (!route.startsWith("info/refs")) {
        stand.codeHost.inject({ path: /archive|lfs/, times: 1 }, { status: 403, body: "" });
      }
      assert.equal((await stand.ask(`/org/${name}.git/${route}`, { headers: OWNER })).status, 403);
      stand.codeHost.clearFaults();
      assertClosed(await askAll(OWNER), [403]);
    });
  }

  it("a public repository that turned private is closed to external callers [svc 1.33]", async () => {
    await newRepository();
    stand.codeHost.setVisibility("org", name, "public");
    for (const { status } of await askAll({})) assert.equal(status, 200);
    stand.codeHost.setVisibility("org", name, "private");
    // The manifest always asks the code host, whose refusal ends the authorization for files.
    assertClosed([await askSeed(stand, `org/${name}`)], [401]);
    assertClosed(await askAll({}), [401]);
  });

  it("the old name of a renamed repository gives nothing [svc 1.33]", async () => {
    await newRepository();
    stand.codeHost.rename("org", name, "org", `${name}-new`);
    assertClosed(await askAll(OTHER), [502]);
  });

  it("a credential is authorized itself [svc 1.8]", async () => {
    await newRepository();
    stand.codeHost.addUser("other", "other-token", { repositories: ["org/elsewhere"] });
    for (const { status } of await askAll(OWNER)) assert.equal(status, 200);
    assertClosed(await askAll(OTHER), [404]);
    stand.codeHost.addUser("other", "other-token", { repositories: [`org/${name}`] });
    stand.codeHost.resetCalls();
    assert.equal((await askFile(stand, `org/${name}`, manifest.pack.name, OTHER)).status, 200);
    assert.ok(stand.upstream("ls-refs") > 0);
  });

  it("concurrent ranges of one credential share one request [svc 1.16]", async () => {
    await newRepository();
    stand.codeHost.resetCalls();
    stand.codeHost.inject({ command: "ls-refs" }, { delayMs: 150 });
    const answers = await Promise.all(
      FILES.map((key) => askFile(stand, `org/${name}`, manifest[key].name, OTHER)),
    );
    stand.codeHost.clearFaults();
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    assert.equal(stand.upstream("ls-refs"), 1);
  });

  it("refused while it waits for the code host, a caller gets the refusal", async () => {
    await newRepository();
    const go = Promise.withResolvers<void>();
    stand.codeHost.resetCalls();
    stand.codeHost.inject({ command: "ls-refs", times: 1 }, { until: go.promise, status: 403, body: "no" });
    const waiting = askFile(stand, `org/${name}`, manifest.pack.name, OTHER);
    await until(() => stand.upstream("ls-refs") === 1);
    go.resolve();
    assertClosed([await waiting], [403]);
    stand.codeHost.clearFaults();
  });

  for (const [title, change] of [
    ["removed", () => stand.unlist("org", name)],
    ["disabled", () => stand.list("org", name, { enabled: false })],
    ["without seeds", () => stand.list("org", name, { seed: false })],
  ] as const) {
    it(`a repository that is ${title} while a request waits gives nothing`, async () => {
      await newRepository();
      const go = Promise.withResolvers<void>();
      stand.codeHost.resetCalls();
      stand.codeHost.inject({ command: "ls-refs" }, { until: go.promise });
      const waiting = [
        askFile(stand, `org/${name}`, manifest.pack.name, OTHER),
        askSeed(stand, `org/${name}`, OWNER),
      ];
      await until(() => stand.upstream("ls-refs") === 2);
      change();
      go.resolve();
      const [file, seed] = await Promise.all(waiting);
      stand.codeHost.clearFaults();
      assert.deepEqual([file?.status, seed?.status], [404, 404]);
    });
  }

  it("a commit that was pushed away is in no seed that is sent [svc 1.29]", async () => {
    await newRepository();
    const gone = await git(["-C", path, "rev-parse", "main"]);
    await git(["-C", path, "update-ref", "refs/heads/main", "main~2"]);
    const answer = await askSeed(stand, `org/${name}`, OWNER);
    assert.equal(answer.status, 404);
    assert.doesNotMatch(answer.text, new RegExp(gone));
    for (const file of (await askAll(OWNER)).slice(0, FILES.length))
      assert.equal(file.status, 410, file.text);
  });

  it("an address over its share of probes gets 429 [svc 1.17]", async () => {
    const limited = await startStand({ probesPerMinute: 3, grantSeconds: 0, listed: ["r"] });
    try {
      await limited.codeHost.addRepository("org", "r", { private: true });
      const statuses: number[] = [];
      for (let at = 0; at < 5; at++) {
        limited.codeHost.addUser(`user${at}`, `token${at}`);
        const headers = { Authorization: basic(`token${at}`) };
        statuses.push((await askSeed(limited, "org/r", headers)).status);
      }
      assert.equal(statuses.at(-1), 429, statuses.join(" "));
    } finally {
      await limited.stop();
    }
  });

  it("seeds from another code host are not sent, even with equal refs [svc 1.28]", async () => {
    const first = await startStand({ listed: ["same"] });
    const second = await startStand({ listed: ["same"], storagePath: first.storagePath });
    try {
      await first.codeHost.addRepository("org", "same");
      await second.codeHost.addRepository("org", "same");
      const { pack } = await makeSeed(first, "org/same");
      assert.equal((await askSeed(second, "org/same")).status, 404);
      assert.equal((await askFile(second, "org/same", pack.name)).status, 404);
    } finally {
      await second.stop();
      await first.stop();
    }
  });
});

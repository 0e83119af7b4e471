import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import {
  git,
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startSvc,
  tempFolder,
  until,
  type Finished,
} from "@devplat/testkit";
import { ForwardClock } from "./forward-clock.ts";
import { basic, command, contentOf, startStand, type Answer, type Stand } from "./svc-git-stand.ts";
import { cloneOfBranch, commitOn, invented } from "./svc-overload-stand.ts";

const MAIN = "refs/heads/main";
const RESULT = "application/x-git-upload-pack-result";
const GIT = { Accept: RESULT };
const GRANT_SECONDS = 5;
const PACK_BYTES = 2 * 2 ** 20;
const BRANCHES = 6;

describe("the queue for fetches from the code host", { timeout: 300_000 }, () => {
  let stand: Stand;
  let count = 0;
  let name = "";
  let tip = "";
  let path = "";
  let release = (): void => undefined;
  const clock = new ForwardClock();
  before(async () => {
    stand = await startStand({
      grantSeconds: GRANT_SECONDS,
      clock,
      maxUpstreamFetches: 1,
      queueSilentSeconds: 1,
      // As GitHub. A response with named refs has a section before the pack, which is not known yet.
      refInWant: false,
      listed: ["hog"],
    });
  });
  beforeEach(async () => {
    const hog = `hog${++count}`;
    name = `r${count}`;
    for (const each of [hog, name]) {
      const made = await stand.codeHost.addRepository("org", each);
      if (each === name) ({ path } = made);
      stand.list("org", each);
    }
    tip = await git(["-C", path, "rev-parse", MAIN]);
    // One fetch holds the only place until the test lets it go.
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject({ path: new RegExp(hog), command: "fetch", times: 1 }, { until: go.promise });
    release = () => go.resolve();
    stand.codeHost.resetCalls();
    void stand.git(["clone", "-q", "--bare", `${stand.url}/org/${hog}`, hog]);
    await until(() => stand.upstream("fetch") === 1);
  });
  afterEach(() => {
    release();
    stand.codeHost.clearFaults();
  });
  after(() => stand.stop());

  const told = (): Promise<number> => stand.metric("svc_queue_told");

  it("stock git prints that it waits, and gets its clone", async () => {
    const cloning = stand.git(["clone", "--progress", "--bare", `${stand.url}/org/${name}`, name]);
    await until(async () => (await told()) === 1);
    assert.equal(await stand.metric('svc_queue_waiting{queue="upstream"}'), 1);
    release();
    const cloned = await cloning;
    assert.equal(cloned.code, 0, cloned.stderr);
    assert.match(cloned.stderr, /remote: waiting, 0 ahead/);
    assert.equal(await contentOf(stand.folder(name)), await contentOf(path));
    assert.equal(await told(), 0);
    // The stored response has no part of it.
    const again = await stand.post(`org/${name}`, command("fetch", [`want ${tip}`, "done"]));
    assert.doesNotMatch(again.text, /waiting/);
  });

  it("a quiet clone gets no text", async () => {
    const cloning = stand.git(["clone", "-q", "--bare", `${stand.url}/org/${name}`, name]);
    await until(async () => (await told()) === 1);
    release();
    const cloned = await cloning;
    assert.deepEqual([cloned.code, cloned.stderr], [0, ""]);
  });

  it("no byte is sent in the silent time, and no outcome that is not known yet", async () => {
    const startedAt = performance.now();
    const response = await fetch(`${stand.url}/org/${name}/git-upload-pack`, {
      method: "POST",
      body: command("fetch", [`want ${tip}`, "done"]),
      headers: {
        ...GIT,
        "Content-Type": "application/x-git-upload-pack-request",
        "Git-Protocol": "version=2",
      },
    });
    assert.ok(performance.now() - startedAt >= 1000);
    assert.equal(response.headers.get("x-svc-cache"), null);
    release();
    const text = Buffer.from(await response.arrayBuffer()).toString("latin1");
    assert.ok(text.startsWith("000dpackfile\n") && text.includes("\u0002waiting, 0 ahead\n"));
    assert.match(text, /PACK/);
    assert.equal(
      stand.access.findLast((line) => line["cache_repo"] === `org/${name}`)?.["cache_state"],
      "miss",
    );
  });

  it("clients that joined a fetch that waits are told too", async () => {
    const folders = [0, 1, 2].map((at) => `${name}-${at}`);
    const all = folders.map((folder) =>
      stand.git(["clone", "--progress", "--bare", `${stand.url}/org/${name}`, folder]),
    );
    await until(async () => (await told()) === 3);
    release();
    for (const { code, stderr } of await Promise.all(all)) {
      assert.equal(code, 0, stderr);
      assert.match(stderr, /remote: waiting, 0 ahead/);
    }
    assert.equal(
      stand.codeHost.calls.filter((call) => call.path.includes(`/${name}`) && call.command === "fetch")
        .length,
      1,
    );
  });

  it("access that ends during the wait: an error, and no byte of the pack", async () => {
    stand.codeHost.addUser("alice", `alice-${name}`);
    stand.codeHost.addUser("bob", `bob-${name}`);
    const as = (user: string): Promise<Answer> =>
      stand.post(`org/${name}`, command("fetch", [`want ${tip}`, "done"]), {
        ...GIT,
        Authorization: basic(`${user}-${name}`),
      });
    for (const user of ["alice", "bob"]) {
      await stand.post(`org/${name}`, command("ls-refs", []), { Authorization: basic(`${user}-${name}`) });
    }
    const alice = as("alice");
    await until(async () => (await stand.metric('svc_queue_waiting{queue="upstream"}')) === 1);
    const bob = as("bob");
    await until(async () => (await told()) === 2);
    stand.codeHost.revoke(`bob-${name}`);
    clock.advance(GRANT_SECONDS * 1000);
    release();
    assert.match((await alice).text, /PACK/);
    const { status, text } = await bob;
    assert.equal(status, 200);
    assert.doesNotMatch(text, /PACK/);
    assert.ok(text.includes("\u0003the code host answered 401"), text);
  });

  it("a code host that fails after the wait: an error on side-band 3 that git prints", async () => {
    const cloning = stand.git(["clone", "--progress", "--bare", `${stand.url}/org/${name}`, name]);
    await until(async () => (await told()) === 1);
    stand.codeHost.inject(
      { path: new RegExp(name), command: "fetch", times: 1 },
      { status: 500, body: "no" },
    );
    release();
    const cloned = await cloning;
    assert.notEqual(cloned.code, 0);
    assert.match(cloned.stderr, /remote: the code host answered 500/);
  });

  it("an ERR packet of the code host in place of the pack: git prints an error", async () => {
    const cloning = stand.git(["clone", "--progress", "--bare", `${stand.url}/org/${name}`, name]);
    await until(async () => (await told()) === 1);
    stand.codeHost.inject(
      { path: new RegExp(name), command: "fetch", times: 1 },
      { status: 200, headers: { "Content-Type": RESULT }, body: "0012ERR not now!\n" },
    );
    release();
    const cloned = await cloning;
    assert.notEqual(cloned.code, 0);
    assert.match(cloned.stderr, /remote: the response of \S+ broke off; try again/);
  });

  it("a client that leaves during the wait frees its position", async () => {
    const controller = new AbortController();
    const response = await fetch(`${stand.url}/org/${name}/git-upload-pack`, {
      method: "POST",
      body: command("fetch", [`want ${tip}`, "done"]),
      headers: { "Content-Type": "application/x-git-upload-pack-request", "Git-Protocol": "version=2" },
      signal: controller.signal,
    });
    assert.equal(response.status, 200);
    controller.abort();
    await until(async () => (await told()) === 0);
    assert.equal(await stand.metric('svc_queue_waiting{queue="upstream"}'), 0);
  });
});

describe("a place that cannot be had in cache.queue_seconds", { timeout: 120_000 }, () => {
  let stand: Stand;
  let tip = "";
  const go = Promise.withResolvers<void>();
  let hog: Promise<unknown> = Promise.resolve();
  before(async () => {
    stand = await startStand({ maxUpstreamFetches: 1, queueSeconds: 1, listed: ["hog", "r"] });
    await stand.codeHost.addRepository("org", "hog");
    const { path } = await stand.codeHost.addRepository("org", "r");
    tip = await git(["-C", path, "rev-parse", MAIN]);
    stand.codeHost.inject({ path: /hog/, command: "fetch", times: 1 }, { until: go.promise });
    hog = stand.git(["clone", "-q", "--bare", `${stand.url}/org/hog`, "hog"]);
    await until(() => stand.upstream("fetch") === 1);
  });
  after(async () => {
    go.resolve();
    await hog;
    await stand.stop();
  });

  it("stock git prints the refusal [svc 2.27]", async () => {
    const { code, stderr } = await stand.git(["clone", "-q", "--bare", `${stand.url}/org/r`, "r"]);
    assert.equal(code, 128);
    assert.match(stderr, /fatal: remote error: too many requests are waiting; try again/);
    assert.equal(await stand.metric('svc_queue_total{queue="upstream",result="refused"}'), 1);
    const line = stand.access.findLast((each) => each["cache_repo"] === "org/r");
    assert.deepEqual(
      [line?.["status"], line?.["refused_by"], line?.["cache_state"]],
      [200, "queue", "rejected"],
    );
  });

  it("other clients get 503 with Retry-After", async () => {
    const answer = await stand.post("org/r", command("fetch", [`want ${tip}`, "done"]));
    assert.equal(answer.status, 503);
    assert.ok(Number(answer.headers["retry-after"]) > 0);
    assert.equal(answer.headers["x-svc-cache"], "rejected");
  });
});

describe("a stop of the service while clients wait", { timeout: 120_000 }, () => {
  it("those who were told get their clones, and the service ends", async () => {
    const codeHost = await startCodeHost({ refInWant: false });
    const folder = await tempFolder("svc-queue");
    const svc = await startSvc({
      codeHost,
      env: { SVC_CACHE_MAX_UPSTREAM_FETCHES: "1", SVC_CACHE_QUEUE_SILENT_SECONDS: "0" },
    });
    try {
      for (const each of ["hog", "r"]) {
        await codeHost.addRepository("org", each);
        await svc.addCachedRepository("org", each);
      }
      const go = Promise.withResolvers<void>();
      codeHost.inject({ path: /hog/, command: "fetch", times: 1 }, { until: go.promise });
      const clone = (each: string): Promise<Finished> =>
        run("git", ["clone", "--progress", "--bare", `${svc.url}/org/${each}`, each], {
          cwd: folder.path,
          env: gitEnvironment(),
          timeoutMs: 60_000,
        });
      const hog = clone("hog");
      await until(() => codeHost.calls.some(({ command: asked }) => asked === "fetch"));
      const waiting = clone("r");
      await until(async () => /^svc_queue_told 1$/m.test(await (await fetch(svc.metricsUrl)).text()));
      const stopped = svc.stop();
      await svc.logged(/stopping|SIGTERM/);
      go.resolve();
      for (const { code, stderr } of [await hog, await waiting]) assert.equal(code, 0, stderr);
      assert.match((await waiting).stderr, /remote: waiting, 0 ahead/);
      assert.equal(await stopped, 0);
    } finally {
      await svc.stop().catch(() => undefined);
      await codeHost.stop();
      await folder.remove();
    }
  });
});

describe("the queue for large responses", { timeout: 300_000 }, () => {
  let stand: Stand;
  let path = "";
  let tip = "";
  const oids: string[] = [];
  before(async () => {
    stand = await startStand({
      listed: ["r"],
      heavyBytes: PACK_BYTES / 2,
      maxHeavyResponses: 1,
      queueSilentSeconds: 0,
    });
    ({ path } = await stand.codeHost.addRepository("org", "r", {
      build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: PACK_BYTES }),
    }));
    tip = await git(["-C", path, "rev-parse", MAIN]);
    for (let at = 0; at < BRANCHES; at++) {
      oids.push(await commitOn(path, `b${at}`, tip));
    }
    const refs = JSON.stringify({ refs: { [MAIN]: tip } });
    const filled = await stand.ask("/org/r/svc/ensure", {
      method: "POST",
      body: refs,
      headers: { "Content-Type": "application/json" },
    });
    assert.equal(filled.status, 200, filled.text);
    await stand.post("org/r", command("ls-refs", []));
    stand.codeHost.resetCalls();
  });
  after(() => stand.stop());

  const waited = async (): Promise<number> => {
    const results = ["served", "refused", "left"];
    const counts = results.map((result) =>
      stand.metric(`svc_queue_total{queue="responses",result="${result}"}`),
    );
    return (await Promise.all(counts)).reduce((sum, each) => sum + each, 0);
  };

  it("distinct clones at the same time: some wait, and all are right", async () => {
    const all = oids.map((_, at) => stand.git(cloneOfBranch(`${stand.url}/org/r`, `b${at}`)));
    const done = await Promise.all(all);
    for (const { code, stderr } of done) assert.equal(code, 0, stderr);
    for (const [at, oid] of oids.entries()) {
      assert.equal(await git(["-C", stand.folder(`b${at}`), "rev-parse", `b${at}`]), oid);
      await git(["-C", stand.folder(`b${at}`), "fsck", "--full", "--strict"]);
    }
    assert.equal(stand.upstream("fetch"), 0);
  });

  it("a request with one invented have is weighed like any clone", async () => {
    const earlier = await waited();
    const clone = (at: number): Promise<Answer> =>
      stand.post(
        "org/r",
        command("fetch", ["thin-pack", `want ${tip}`, `have ${invented(at)}`, "done"]),
        GIT,
      );
    const answers = await Promise.all(Array.from({ length: 8 }, (_, at) => clone(at)));
    for (const { text } of answers) assert.match(text, /PACK/);
    const queued = await waited();
    assert.ok(queued > earlier, "none of them had to wait");
    assert.ok(answers.some(({ text }) => /waiting, \d+ ahead/.test(text)));
    const behind = oids.map((oid) =>
      stand.post("org/r", command("fetch", ["thin-pack", `want ${oid}`, `have ${tip}`, "done"]), GIT),
    );
    for (const { text } of await Promise.all(behind)) assert.match(text, /PACK/);
    assert.equal(await waited(), queued);
    assert.equal(stand.upstream("fetch"), 0);
  });

  it("a response that is told begins with its own sections, and stock git reads it", async () => {
    // A shallow clone has a section before the pack.
    const all = oids.map((_, at) => {
      const args = [
        "clone",
        "--progress",
        "--bare",
        "--depth=1",
        "-b",
        `b${at}`,
        `${stand.url}/org/r`,
        `s${at}`,
      ];
      return stand.git(args);
    });
    for (const { code, stderr } of await Promise.all(all)) assert.equal(code, 0, stderr);
    for (const [at, oid] of oids.entries()) {
      assert.equal(await git(["-C", stand.folder(`s${at}`), "rev-parse", `b${at}`]), oid);
    }
    assert.equal(stand.upstream("fetch"), 0);
  });

  it("stored responses never wait", async () => {
    const body = command("fetch", ["thin-pack", `want ${tip}`, "done"]);
    // The second use stores it.
    for (let uses = 0; uses < 2; uses++) await stand.post("org/r", body, GIT);
    await stand.cache.settled();
    const earlier = await waited();
    const answers = await Promise.all(Array.from({ length: 8 }, () => stand.post("org/r", body, GIT)));
    for (const answer of answers) {
      assert.equal(answer.headers["x-svc-cache"], "hit");
      assert.doesNotMatch(answer.text, /waiting/);
    }
    assert.equal(await waited(), earlier);
  });
});

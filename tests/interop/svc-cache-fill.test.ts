import assert from "node:assert/strict";
import { mkdir, readdir, rm } from "node:fs/promises";
import { request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { describe, it } from "node:test";
import { git, repositories, tempFolder, until } from "@devplat/testkit";
import { command, startStand, type Stand, type StandOptions } from "./svc-git-stand.ts";

interface Cold {
  readonly stand: Stand;
  readonly path: string;
  readonly store: string;
  /** A shallow fetch of one commit, by id, as continuous integration sends it: without ls-refs. */
  readonly fetch: (oid: string) => Buffer;
}

/** A listed repository with a proposed change that no branch holds, nothing stored yet. */
async function withCold(options: StandOptions, test: (cold: Cold) => Promise<void>): Promise<void> {
  const stand = await startStand(options);
  try {
    const { path } = await stand.codeHost.addRepository("org", "r", {
      build: (dir) => repositories.linear(dir, { commits: 8 }),
    });
    const tree = await git(["-C", path, "rev-parse", "refs/heads/main^{tree}"]);
    const identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    const proposed = await git(["-C", path, ...identity, "commit-tree", "-m", "proposed", tree]);
    await git(["-C", path, "update-ref", "refs/pull/1/head", proposed]);
    stand.list("org", "r");
    await test({
      stand,
      path,
      store: join(stand.storagePath, "org", "r.git"),
      fetch: (oid) => command("fetch", ["no-progress", "deepen 1", `want ${oid}`, "done"]),
    });
  } finally {
    await stand.stop();
  }
}

const oidOf = (path: string, name: string): Promise<string> => git(["-C", path, "rev-parse", name]);
/** Sends a fetch and takes only the head of the answer; the rest when asked to. */
function beginSlowly(stand: Stand, body: Buffer): Promise<() => Promise<Buffer>> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const headers = {
    "content-type": "application/x-git-upload-pack-request",
    "git-protocol": "version=2",
  };
  const outgoing = request(`${stand.url}/org/slow/git-upload-pack`, {
    method: "POST",
    headers,
    agent: false,
  });
  outgoing.on("response", resolve);
  outgoing.on("error", reject);
  outgoing.end(body);
  return promise.then((response) => async () => {
    const parts: Buffer[] = [];
    for await (const part of response) parts.push(part as Buffer);
    return Buffer.concat(parts);
  });
}

const packs = async (store: string): Promise<number> =>
  (await readdir(join(store, "objects", "pack")).catch(() => [])).filter((file) => file.endsWith(".pack"))
    .length;

describe("an empty store behind a request that cannot fill it", () => {
  it("cache.fill full: a check-out by id fetches branches and tags, once for all ids [svc 2.18]", async () => {
    await withCold({}, async ({ stand, path, store, fetch }) => {
      const [tip, below] = [await oidOf(path, "main"), await oidOf(path, "main~1")];
      assert.equal((await stand.post("org/r", fetch(tip))).headers["x-svc-cache"], "miss");
      await stand.cache.settled();
      assert.equal(stand.upstream("fetch"), 2);
      for (const oid of [tip, below]) {
        assert.equal((await stand.post("org/r", fetch(oid))).headers["x-svc-cache"], "hit");
      }
      assert.equal(stand.upstream("fetch"), 2);
      await git(["-C", store, "fsck", "--full", "--strict"]);
      const format = ["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags"];
      assert.equal(await git(["-C", store, ...format]), await git(["-C", path, ...format]));
    });
  });

  it("refs of pull requests are not prefetched [svc 2.18]", async () => {
    await withCold({}, async ({ stand, path, store, fetch }) => {
      await stand.post("org/r", command("ls-refs", []));
      await stand.post("org/r", fetch(await oidOf(path, "main")));
      await stand.cache.settled();
      const proposed = await oidOf(path, "refs/pull/1/head");
      const objects = await git(["-C", store, "cat-file", "--batch-all-objects", "--batch-check"]);
      assert.doesNotMatch(objects, new RegExp(proposed));
      const answer = await stand.post("org/r", fetch(proposed));
      assert.match(answer.text, /PACK/);
      assert.equal(answer.headers["x-svc-cache"], "miss");
    });
  });

  it("cache.fill wants: it fetches the wanted history; a later commit costs its delta", async () => {
    await withCold({ fill: "wants" }, async ({ stand, path, store, fetch }) => {
      const below = await oidOf(path, "main~2");
      await stand.post("org/r", fetch(below));
      await stand.cache.settled();
      const tip = await oidOf(path, "main");
      const has = (oid: string): Promise<string> => git(["-C", store, "cat-file", "-t", oid]);
      assert.equal(await has(below), "commit");
      await assert.rejects(has(tip));
      stand.codeHost.resetCalls();
      await stand.post("org/r", fetch(tip));
      assert.equal(stand.upstream("fetch"), 1);
      assert.equal(await has(tip), "commit");
    });
  });

  it("one fill at a time for a repository [svc 2.18]", async () => {
    await withCold({}, async ({ stand, path, store, fetch }) => {
      const oids = await Promise.all(["main", "main~1", "main~2"].map((name) => oidOf(path, name)));
      stand.codeHost.inject({ command: "fetch" }, { delayMs: 100 });
      await Promise.all(oids.map((oid) => stand.post("org/r", fetch(oid))));
      await stand.cache.settled();
      stand.codeHost.clearFaults();
      assert.equal(stand.upstream("fetch"), 4);
      assert.equal(await packs(store), 1);
    });
  });

  it("a slow client of a full clone does not delay the fill for a different request [svc 2.13]", async () => {
    await withCold({}, async ({ stand, fetch }) => {
      const { path } = await stand.codeHost.addRepository("org", "slow", {
        build: (dir) => repositories.bigBlobs(dir, { blobs: 8, bytes: 2 ** 20 }),
      });
      stand.list("org", "slow");
      await stand.post("org/slow", command("ls-refs", []));
      const tip = await oidOf(path, "main");
      const slow = await beginSlowly(stand, command("fetch", ["no-progress", `want ${tip}`, "done"]));
      await until(() =>
        stand.codeHost.calls.some((call) => call.command === "fetch" && call.bytesOut > 2 ** 23),
      );
      await until(async () => (await stand.post("org/slow", fetch(tip))).headers["x-svc-cache"] === "hit");
      const answer = await slow();
      assert.equal(answer.subarray(-4).toString(), "0000");
    });
  });

  it("a change that an ls-refs shows before the mirror is filled is fetched once it is [svc 4.2]", async () => {
    await withCold({ serviceToken: "service-token" }, async ({ stand, path, store, fetch }) => {
      stand.codeHost.addUser("svc", "service-token");
      const go = Promise.withResolvers<void>();
      const first = await oidOf(path, "main");
      await stand.post("org/r", command("ls-refs", []));
      // The request's own fetch, then that of the fill.
      stand.codeHost.inject({ command: "fetch", times: 1 }, {});
      stand.codeHost.inject({ command: "fetch", times: 1 }, { until: go.promise });
      await stand.post("org/r", fetch(first));
      await until(() => stand.upstream("fetch") === 2);
      await stand.codeHost.push("org", "r", { commits: 1 });
      await stand.post("org/r", command("ls-refs", []));
      go.resolve();
      await stand.cache.settled();
      assert.equal(await git(["-C", store, "rev-parse", "main"]), await oidOf(path, "main"));
    });
  });

  it("a repository over cache.fill_max_mb is not stored, logged once, not retried [svc 2.18]", async () => {
    await withCold({ fillMaxMb: 0.0001 }, async ({ stand, path, store, fetch }) => {
      for (const name of ["main", "main~1"]) {
        await stand.post("org/r", fetch(await oidOf(path, name)));
        await stand.cache.settled();
      }
      assert.equal(stand.upstream("fetch"), 3);
      assert.equal(await packs(store), 0);
      const lines = stand.log.filter((line) => /cannot be stored ahead/.test(String(line["message"])));
      assert.equal(lines.length, 1);
    });
  });
});

it("a fill that was killed is made up for from the stored response, when that is hit [svc 2.13]", async () => {
  const storage = await tempFolder("svc-killed-fill");
  const first = await startStand({ storagePath: storage.path });
  const start = async (): Promise<Stand> => {
    const { codeHost } = first;
    const stand = await startStand({
      storagePath: storage.path,
      codeHost,
      hostUrl: codeHost.url,
      listed: ["r"],
    });
    return stand;
  };
  try {
    const { path } = await first.codeHost.addRepository("org", "r", {
      build: (dir) => repositories.linear(dir, { commits: 8 }),
    });
    first.list("org", "r");
    await first.git(["clone", "-q", `${first.url}/org/r`, "first"]);
    await first.cache.settled();
    const store = join(first.storagePath, "org", "r.git");
    // As a killed process leaves it: nothing names the packs.
    for (const file of ["packed-refs", "objects/pack", "objects/info"])
      await rm(join(store, file), { recursive: true });
    for (const name of ["pack", "info"]) await mkdir(join(store, "objects", name));
    const second = await start();
    try {
      await second.git(["clone", "-q", `${second.url}/org/r`, "second"]);
      await second.cache.settled();
      assert.equal(await packs(store), 1);
      await git(["-C", store, "fsck", "--full", "--strict"]);
      first.codeHost.resetCalls();
      const below = await oidOf(path, "main~1");
      const shallow = command("fetch", ["no-progress", "deepen 1", `want ${below}`, "done"]);
      assert.equal((await second.post("org/r", shallow)).headers["x-svc-cache"], "hit");
      assert.equal(second.upstream("fetch"), 0);
    } finally {
      await second.stop();
    }
  } finally {
    await first.stop();
    await storage.remove();
  }
});

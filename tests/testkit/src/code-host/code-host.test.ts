import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { gitEnvironment } from "../git-environment.ts";
import { git, run } from "../process.ts";
import { bigBlobs, sha256 } from "../repositories/repositories.ts";
import { tempFolder, type TempFolder } from "../temp-folder.ts";
import { startCodeHost, type CodeHost } from "./code-host.ts";

const MIB = 2 ** 20;
const LS_REFS = "0014command=ls-refs\n0000";
const V2_HEADERS = {
  "content-type": "application/x-git-upload-pack-request",
  "git-protocol": "version=2",
};

describe("code host", () => {
  let host: CodeHost;
  let work: TempFolder;
  let clones = 0;
  before(async () => {
    host = await startCodeHost();
    work = await tempFolder("clones");
    await host.addRepository("acme", "open");
    await host.addRepository("acme", "hidden", { private: true });
    await host.addRepository("acme", "large", {
      build: (dir) => bigBlobs(dir, { blobs: 1, bytes: 2 * MIB }),
    });
    host.addUser("ada", "ada-token");
    host.addUser("bob", "bob-token", { repositories: ["acme/open"] });
  });
  after(async () => {
    await host.stop();
    await work.remove();
  });
  beforeEach(() => {
    host.resetCalls();
    host.clearFaults();
  });

  const authorised = (token: string): string => host.url.replace("://", `://x:${token}@`);
  const clone = (url: string, config: string[] = [], env: NodeJS.ProcessEnv = {}) =>
    run("git", ["clone", "-q", "--mirror", ...config, url, join(work.path, String(++clones))], {
      env: gitEnvironment(env),
    });
  const cloned = (): string => join(work.path, String(clones));
  const v2 = (
    path: string,
    body: string | Buffer<ArrayBuffer> = LS_REFS,
    headers: Record<string, string> = {},
  ) => fetch(host.url + path, { method: "POST", body, headers: { ...V2_HEADERS, ...headers } });

  const tipOf = async (name: string): Promise<string> =>
    (await git(["ls-remote", `${host.url}/acme/${name}`, "HEAD"])).split("\t")[0] ?? "";
  /** The gits that serve a repository of this host; they run in its folder. */
  const gitProcesses = async (root: string = host.root): Promise<string> => {
    const { stdout } = await run("sh", ["-c", `ls -l /proc/[0-9]*/cwd 2>/dev/null | grep -F '${root}'`]);
    return stdout;
  };
  /** Waits until the kernel has taken the killed ones away. */
  const noGitProcesses = async (root?: string): Promise<void> => {
    const deadline = performance.now() + 30_000;
    while ((await gitProcesses(root)) !== "") assert.ok(performance.now() < deadline, "git runs on");
  };

  for (const version of [0, 1, 2]) {
    it(`git clone by protocol v${version} gives the same refs and a clean repository`, async () => {
      const done = await clone(`${host.url}/acme/open`, ["-c", `protocol.version=${version}`]);
      assert.equal(done.code, 0, done.stderr);
      await git(["-C", cloned(), "fsck", "--strict"]);
      const at = host.calls[0]?.path ?? "";
      assert.equal(at, "/acme/open/info/refs");
      const commands = host.calls.flatMap((call) => call.command ?? []);
      assert.deepEqual(commands, version === 2 ? ["ls-refs", "fetch"] : []);
      assert.ok(host.calls.every((call) => call.status === 200 && call.finished && call.bytesOut > 0));
    });
  }

  it("git clone by dumb HTTP works and calls no service", async () => {
    const done = await clone(`${host.url}/acme/open.git`, [], { GIT_SMART_HTTP: "0" });
    assert.equal(done.code, 0, done.stderr);
    await git(["-C", cloned(), "fsck", "--strict"]);
    assert.ok(host.calls.length > 2);
    assert.ok(host.calls.every((call) => call.service === undefined));
  });

  it("git clone of a SHA-256 repository gives a SHA-256 repository", async () => {
    await host.addRepository("acme", "long-ids", { build: sha256 });
    const done = await clone(`${host.url}/acme/long-ids`);
    assert.equal(done.code, 0, done.stderr);
    assert.equal(await git(["-C", cloned(), "rev-parse", "--show-object-format"]), "sha256");
  });

  it("git push with a credential moves the ref, with sized, chunked and gzip bodies", async () => {
    const url = `${authorised("ada-token")}/acme/open`;
    const dir = join(work.path, String(++clones));
    await git(["clone", "-q", url, dir]);
    for (const postBuffer of ["1m", "1k"]) {
      await git(["-C", dir, "commit", "-q", "--allow-empty", "-m", "more", "-m", "x".repeat(70_000)]);
      await git(["-C", dir, "-c", `http.postBuffer=${postBuffer}`, "push", "-q", "origin", "HEAD:main"]);
      assert.equal(
        await git(["-C", dir, "ls-remote", url, "refs/heads/main"]),
        `${await git(["-C", dir, "rev-parse", "HEAD"])}\trefs/heads/main`,
      );
    }
  });

  it("a gzip ls-refs body is understood and its command noted", async () => {
    const answer = await v2("/acme/open/git-upload-pack", gzipSync(LS_REFS), { "content-encoding": "gzip" });
    assert.equal(answer.status, 200);
    assert.match(await answer.text(), /refs\/heads\/main/);
    assert.equal(host.calls[0]?.command, "ls-refs");
  });

  it("a push without a credential is refused with 401, without access with 403", async () => {
    const path = "/acme/open/info/refs?service=git-receive-pack";
    assert.equal((await fetch(host.url + path)).status, 401);
    host.addUser("eve", "eve-token", { repositories: [] });
    const answer = await fetch(host.url + path, { headers: { authorization: "token eve-token" } });
    assert.equal(answer.status, 403);
  });

  it("a private repository sends 401, 404 to a foreign credential, and 200 to its own", async () => {
    const path = "/acme/hidden/info/refs?service=git-upload-pack";
    const as = async (authorization?: string): Promise<number> =>
      (await fetch(host.url + path, authorization === undefined ? {} : { headers: { authorization } }))
        .status;
    const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;
    const challenge = await fetch(host.url + path);
    assert.equal(challenge.status, 401);
    assert.equal(challenge.headers.get("www-authenticate"), 'Basic realm="GitHub"');
    assert.equal(await as("Bearer bob-token"), 404);
    assert.equal(await as("Bearer nonsense"), 401);
    for (const good of ["Bearer ada-token", "token ada-token", basic("x:ada-token"), basic("ada-token:x")]) {
      assert.equal(await as(good), 200, good);
    }
    host.revoke("ada-token");
    assert.equal(await as("Bearer ada-token"), 401);
    host.addUser("ada", "ada-token");
  });

  it("visibility, renaming, removal and re-creation change the next response", async () => {
    await host.addRepository("acme", "moving");
    const get = (name: string, headers: Record<string, string> = {}) =>
      fetch(`${host.url}/${name}/info/refs?service=git-upload-pack`, { redirect: "manual", headers });
    host.setVisibility("acme", "moving", "forbidden");
    assert.equal((await get("acme/moving")).status, 403);
    host.setVisibility("acme", "moving", "gone");
    assert.equal((await get("acme/moving")).status, 404);
    host.setVisibility("acme", "moving", "public");
    host.rename("acme", "moving", "Acme2", "Moved");
    const moved = await get("ACME/moving");
    assert.equal(moved.status, 301);
    assert.equal(
      moved.headers.get("location"),
      `${host.url}/Acme2/Moved.git/info/refs?service=git-upload-pack`,
    );
    assert.equal((await clone(`${host.url}/acme/moving.git`)).code, 0);
    await host.remove("acme2", "moved");
    assert.equal((await get("acme2/moved")).status, 401);
    assert.equal((await get("acme2/moved", { authorization: "token ada-token" })).status, 404);
    await host.addRepository("acme", "moving");
    assert.equal((await get("acme/moving")).status, 200);
  });

  it("commits that are pushed from elsewhere show in the next ls-refs", async () => {
    const earlier = await (await v2("/acme/open/git-upload-pack")).text();
    await host.push("acme", "open", { commits: 2 });
    assert.notEqual(await (await v2("/acme/open/git-upload-pack")).text(), earlier);
  });

  it("the API gives the own user and a repository, and hides a private one", async () => {
    const get = (path: string, token?: string) =>
      fetch(host.apiUrl + path, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
    assert.equal((await get("/user")).status, 401);
    assert.equal(((await (await get("/user", "ada-token")).json()) as { login: string }).login, "ada");
    assert.equal((await get("/repos/acme/hidden")).status, 404);
    assert.equal((await get("/repos/acme/hidden", "bob-token")).status, 404);
    const seen = (await (await get("/repos/acme/hidden", "ada-token")).json()) as Record<string, unknown>;
    assert.equal(seen["private"], true);
    assert.equal(seen["full_name"], "acme/hidden");
  });

  it("a status fault meets only its command, and only as often as asked", async () => {
    host.inject(
      { command: "ls-refs", times: 1 },
      { status: 429, headers: { "Retry-After": "7" }, body: "slow" },
    );
    const spoiled = await v2("/acme/open/git-upload-pack");
    assert.equal(spoiled.status, 429);
    assert.equal(spoiled.headers.get("retry-after"), "7");
    assert.equal(await spoiled.text(), "slow");
    assert.equal((await v2("/acme/open/git-upload-pack")).status, 200);
  });

  it("a cut fault sends exactly its bytes of the pack and then drops the connection", async () => {
    host.inject({ command: "fetch" }, { cutAfterBytes: MIB });
    const done = await clone(`${host.url}/acme/large`);
    assert.notEqual(done.code, 0);
    const call = host.calls.at(-1);
    assert.equal(call?.bytesOut, MIB);
    assert.equal(call?.finished, false);
  });

  it("a stall fault sends its bytes and then nothing, until the client leaves", async () => {
    host.inject({ path: /upload-pack$/ }, { stallAfterBytes: 10 });
    const leave = new AbortController();
    const answer = await fetch(`${host.url}/acme/open/git-upload-pack`, {
      method: "POST",
      body: LS_REFS,
      headers: V2_HEADERS,
      signal: leave.signal,
    });
    const reader = answer.body?.getReader();
    assert.equal((await reader?.read())?.value?.length, 10);
    const more = reader?.read();
    leave.abort();
    await assert.rejects(more ?? Promise.resolve());
    assert.equal(host.calls[0]?.bytesOut, 10);
  });

  it("a hang fault never answers", async () => {
    host.inject({}, { hang: true });
    const leave = new AbortController();
    const asked = fetch(host.url, { signal: leave.signal });
    while (host.calls.length === 0) await sleep(5);
    leave.abort();
    await assert.rejects(asked, { name: "AbortError" });
    assert.equal(host.calls[0]?.status, 0);
  });

  it("a delay fault answers late and whole", async () => {
    host.inject({ times: 1 }, { delayMs: 60 });
    const begun = performance.now();
    assert.equal((await v2("/acme/open/git-upload-pack")).status, 200);
    assert.ok(performance.now() - begun >= 59);
  });

  it("a fault with an until answers whole once that is settled", async () => {
    const gate = Promise.withResolvers<void>();
    host.inject({ times: 1 }, { until: gate.promise });
    let answered = false;
    const held = v2("/acme/open/git-upload-pack").then(({ status }) => {
      answered = true;
      return status;
    });
    while (host.calls[0]?.command === undefined) await sleep(5);
    assert.equal((await v2("/acme/open/git-upload-pack")).status, 200);
    assert.equal(answered, false);
    gate.resolve();
    assert.equal(await held, 200);
  });

  it("a client that leaves takes its git with it", async () => {
    // More than the kernel's socket buffers on both sides hold.
    await host.addRepository("acme", "huge", {
      build: (dir) => bigBlobs(dir, { blobs: 1, bytes: 16 * MIB }),
    });
    const leave = new AbortController();
    const body = `0011command=fetch0001000fno-progress0032want ${await tipOf("huge")}\n0009done\n0000`;
    const answer = await fetch(`${host.url}/acme/huge/git-upload-pack`, {
      method: "POST",
      body,
      headers: V2_HEADERS,
      signal: leave.signal,
    });
    await answer.body?.getReader().read();
    assert.notEqual(await gitProcesses(), "");
    leave.abort();
    await noGitProcesses();
    assert.equal(host.calls.at(-1)?.finished, false);
  });

  it("stop drops a hanging request and leaves no git behind", async () => {
    const own = await startCodeHost();
    await own.addRepository("a", "b", { build: (dir) => bigBlobs(dir, { blobs: 2, bytes: 2 * MIB }) });
    own.inject({ path: /upload-pack$/ }, { stallAfterBytes: 100 });
    const cloning = run("git", ["clone", "-q", `${own.url}/a/b`, join(work.path, String(++clones))], {
      env: gitEnvironment(),
    });
    while (!own.calls.some((call) => call.command === "ls-refs" && call.bytesOut > 0)) {
      await sleep(5);
    }
    await own.stop();
    assert.notEqual((await cloning).code, 0);
    await noGitProcesses(own.root);
  });
});

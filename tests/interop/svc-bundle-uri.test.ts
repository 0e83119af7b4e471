import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { git, newerGitFolder, repositories, run, gitEnvironment, type Finished } from "@devplat/testkit";
import { assertProblem } from "./svc-ensure-stand.ts";
import { basic, command, contentOf, startStand, type Answer, type Stand } from "./svc-git-stand.ts";
import { askFile, makeSeed, type Manifest } from "./svc-seed-stand.ts";

/** A git that asks for bundles: 2.40 and later. */
const GIT = join(newerGitFolder(), "bin/git");
const OWNER = { Authorization: basic("owner-token") };
const ADVERTISED = { headers: { "Git-Protocol": "version=2", ...OWNER } };
const REQUEST = command("bundle-uri", []);

let stand: Stand;
let count = 0;
before(async () => {
  // As GitHub. With it the code host, git 2.39, sends shallow-info and wanted-refs in another order than newer clients read.
  stand = await startStand({ refInWant: false });
  stand.codeHost.addUser("owner", "owner-token");
  stand.codeHost.addUser("outsider", "outsider-token", { repositories: ["org/elsewhere"] });
});
after(() => stand.stop());

/** A repository with a branch that main does not reach, and a seed of it. */
async function withBundle(
  format: "sha1" | "sha256" = "sha1",
): Promise<{ name: string; path: string; manifest: Manifest; bundle: string }> {
  const name = `r${++count}`;
  const { path } = await stand.codeHost.addRepository("org", name, {
    private: true,
    build: (dir) => repositories.linear(dir, { commits: 9, objectFormat: format }),
  });
  await git(["-C", path, "branch", "side", "main"]);
  await git(["-C", path, "update-ref", "refs/heads/main", "main~3"]);
  await git(["-C", path, "tag", "v1", "main"]);
  stand.list("org", name, { bundles: true });
  const manifest = await makeSeed(stand, `org/${name}`, OWNER);
  return { name, path, manifest, bundle: manifest.pack.name.replace(/pack$/, "bundle") };
}

const advertisement = async (name: string): Promise<string> =>
  (await stand.ask(`/org/${name}.git/info/refs?service=git-upload-pack`, ADVERTISED)).text;
const listOf = (name: string, headers: Record<string, string> = OWNER): Promise<Answer> =>
  stand.post(`org/${name}`, REQUEST, headers);

/** Clones with a git that asks for bundles. Its trace has the packets and the programs that it runs. */
async function cloneWithBundle(name: string, ...more: string[]): Promise<Finished & { folder: string }> {
  const folder = stand.folder(`clone-${name}-${performance.now()}`);
  const url = `${stand.url}/org/${name}.git`;
  const header = `http.extraHeader=Authorization: ${OWNER.Authorization}`;
  const options = ["-c", header, "-c", "transfer.bundleURI=true"];
  const finished = await run(GIT, [...options, "clone", "--mirror", ...more, url, folder], {
    env: gitEnvironment({ GIT_TRACE: "1", GIT_TRACE_PACKET: "1" }),
  });
  assert.equal(finished.code, 0, finished.stderr);
  return { ...finished, folder };
}

/** Refs of a repository, and all objects that they reach. */
async function reachableIn(folder: string): Promise<string> {
  const refs = await git(["-C", folder, "for-each-ref", "--format=%(objectname) %(refname)"]);
  const objects = await git(["-C", folder, "rev-list", "--all", "--objects", "--no-object-names"]);
  await git(["-C", folder, "fsck", "--full", "--strict"]);
  return `${refs}\n${objects.split("\n").toSorted().join("\n")}`;
}

describe("bundle-uri", { timeout: 300_000 }, () => {
  it("stock git clones with the bundle, and fetches what came after it", async () => {
    for (const format of ["sha1", "sha256"] as const) {
      const { name, path, bundle } = await withBundle(format);
      await stand.codeHost.push("org", name, { commits: 2 });
      const { stderr, folder } = await cloneWithBundle(name);
      assert.match(stderr, /bundle-uri/);
      assert.ok(stderr.includes(`svc/seed/${bundle}`), stderr);
      // The objects of the bundle are here before the fetch.
      assert.match(stderr, /clone> have [0-9a-f]+/);
      const refs = await git(["-C", folder, "for-each-ref", "--format=%(refname)", "refs/bundles"]);
      assert.match(refs, /refs\/bundles\/.*side/);
      for (const ref of refs.split("\n")) await git(["-C", folder, "update-ref", "-d", ref]);
      assert.equal(await contentOf(folder), await contentOf(path));
    }
  });

  it("a bundle is the bundle of git with the same refs and the pack of the seed", async () => {
    const { name, path, manifest, bundle } = await withBundle();
    const answer = await askFile(stand, `org/${name}`, bundle, OWNER);
    assert.equal(answer.status, 200);
    const pack = await askFile(stand, `org/${name}`, manifest.pack.name, OWNER);
    assert.ok(answer.body.subarray(-pack.body.length).equals(pack.body));
    const file = stand.folder(bundle);
    await writeFile(file, answer.body);
    assert.match(await git(["-C", path, "bundle", "verify", file]), /complete history/);
    const heads = await git(["bundle", "list-heads", file]);
    const expected = await git(["-C", path, "for-each-ref", "--format=%(objectname) %(refname)"]);
    assert.deepEqual(heads.split("\n").toSorted(), expected.split("\n").toSorted());
  });

  it("parts of a bundle are those of the whole, also over its refs", async () => {
    const { name, bundle } = await withBundle();
    const ask = (headers: Record<string, string>): Promise<Answer> =>
      askFile(stand, `org/${name}`, bundle, { ...OWNER, ...headers });
    const { body, headers } = await ask({});
    const begin = body.indexOf("PACK");
    for (const [from, to] of [
      [0, 9],
      [begin - 5, begin - 1],
      [begin - 5, begin + 30],
      [begin, body.length - 1],
      [body.length - 3, body.length - 1],
    ] as const) {
      const part = await ask({ Range: `bytes=${from}-${to}`, "If-Range": String(headers["etag"]) });
      assert.equal(part.status, 206);
      assert.equal(part.headers["content-range"], `bytes ${from}-${to}/${body.length}`);
      assert.ok(part.body.equals(body.subarray(from, to + 1)), `${from}-${to}`);
    }
    assert.equal((await ask({ "If-None-Match": String(headers["etag"]) })).status, 304);
  });

  it("is not advertised, listed or sent without bundles in the record", async () => {
    const { name, bundle } = await withBundle();
    assert.match(await advertisement(name), /000fbundle-uri\n0000$/);
    assert.match((await listOf(name)).text, /bundle\.seed\.uri=svc\/seed\/pack-/);
    for (const settings of [{}, { bundles: true, seed: false }, { bundles: true, enabled: false }]) {
      stand.list("org", name, settings);
      assert.doesNotMatch(await advertisement(name), /bundle-uri/);
      assert.doesNotMatch((await listOf(name)).text, /bundle\./);
      assertProblem(await askFile(stand, `org/${name}`, bundle, OWNER), 404, "no_seed");
      // Before the code host has authorized a caller, nothing is said.
      assert.equal((await askFile(stand, `org/${name}`, bundle)).status, 401);
    }
    stand.list("org", name, {});
    const { stderr, folder } = await cloneWithBundle(name);
    assert.doesNotMatch(stderr, /bundle/);
    await git(["-C", folder, "fsck", "--full", "--strict"]);
  });

  it("callers without access get the code host's refusal, and no word of a bundle", async () => {
    const { name, bundle } = await withBundle();
    for (const [headers, status] of [
      [{}, 401],
      [{ Authorization: basic("outsider-token") }, 404],
      [{ Authorization: basic("made-up") }, 401],
    ] as const) {
      for (const answer of [
        await listOf(name, headers),
        await askFile(stand, `org/${name}`, bundle, headers),
        await askFile(stand, `org/${name}`, bundle, { ...headers, Range: "bytes=0-9" }),
      ]) {
        assert.equal(answer.status, status);
        assert.equal(answer.headers["x-svc-cache"], "rejected");
        assert.doesNotMatch(answer.text, /bundle\.|git bundle|PACK/);
      }
    }
  });

  it("a branch purged after the list: 410, and git clones without the bundle", async () => {
    const { name, path, bundle } = await withBundle();
    assert.match((await listOf(name)).text, new RegExp(bundle));
    await git(["-C", path, "update-ref", "-d", "refs/heads/side"]);
    await stand.post(`org/${name}`, command("ls-refs", ["ref-prefix refs/heads/"]), OWNER);
    assertProblem(await askFile(stand, `org/${name}`, bundle, OWNER), 410, "not_shown");
    assert.doesNotMatch((await listOf(name)).text, /bundle\.seed/);
    // A list from before the purge.
    const address = `${stand.url}/org/${name}.git/svc/seed/${bundle}`;
    stand.list("org", name, {});
    const { stderr, folder } = await cloneWithBundle(name, `--bundle-uri=${address}`);
    assert.match(stderr, /warning: failed to fetch.*bundle|failed to download bundle/);
    assert.equal(await reachableIn(folder), await reachableIn(path));
  });

  it("without a seed the list is empty, and a clone with --depth 1 goes on", async () => {
    const name = `r${++count}`;
    const { path } = await stand.codeHost.addRepository("org", name, { private: true });
    stand.list("org", name, { bundles: true });
    assert.doesNotMatch((await listOf(name)).text, /bundle\.seed/);
    const { folder } = await cloneWithBundle(name, "--depth=1");
    assert.equal(
      await git(["-C", folder, "rev-parse", "refs/heads/main"]),
      await git(["-C", path, "rev-parse", "refs/heads/main"]),
    );
    await stand.cache.settled();
  });
});

it("with strict_lsrefs there are no bundles", { timeout: 60_000 }, async () => {
  const strict = await startStand({ strictLsRefs: true });
  try {
    await strict.codeHost.addRepository("org", "r");
    strict.list("org", "r", { bundles: true });
    const answer = await strict.ask("/org/r.git/info/refs?service=git-upload-pack", {
      headers: { "Git-Protocol": "version=2" },
    });
    assert.match(answer.text, /version 2/);
    assert.doesNotMatch(answer.text, /bundle-uri/);
  } finally {
    await strict.stop();
  }
});

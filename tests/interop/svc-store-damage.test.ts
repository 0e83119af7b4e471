import assert from "node:assert/strict";
import { chmod, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { FetchResponseWalker, ProtocolError } from "@devplat/git-protocol";
import { git, repositories, until } from "@devplat/testkit";
import { flip } from "./damage-kinds.ts";
import { command, contentOf, startStand, type Stand } from "./svc-git-stand.ts";

/** Flips a bit in the middle of a file. */
async function damage(path: string): Promise<void> {
  const bytes = await readFile(path);
  const at = bytes.length >> 1;
  bytes[at] = (bytes[at] ?? 0) ^ 4;
  await chmod(path, 0o600);
  await writeFile(path, bytes);
}

describe("a damaged pack while the service runs", () => {
  let stand: Stand;
  before(async () => {
    stand = await startStand();
  });
  after(() => stand.stop());

  it("is quarantined alone; its content is fetched again, and the store is clean [svc 2.32]", async () => {
    const { path } = await stand.codeHost.addRepository("org", "one", {
      build: (dir) => repositories.linear(dir),
    });
    stand.list("org", "one");
    const clone = async (to: string, options: readonly string[] = ["--mirror"]): Promise<void> => {
      const result = await stand.git(["clone", "-q", ...options, `${stand.url}/org/one`, to]);
      assert.equal(result.code, 0, result.stderr);
      await stand.cache.settled();
    };
    await clone("first");
    const store = join(stand.storagePath, "org", "one.git");
    const packs = async (): Promise<string[]> =>
      (await readdir(join(store, "objects", "pack"))).filter((file) => file.endsWith(".pack"));
    const [base = ""] = await packs();
    await repositories.append(path, { commits: 2 });
    await clone("second");
    const later = (await packs()).find((name) => name !== base)!;
    await damage(join(store, "objects", "pack", later));
    // A new process reads the files again. The data in memory is undamaged.
    const next = await startStand({
      storagePath: stand.storagePath,
      hostUrl: stand.codeHost.url,
      listed: ["one"],
    });
    try {
      const through = async (to: string): Promise<void> => {
        const result = await next.git([
          "clone",
          "-q",
          "--bare",
          "--filter=blob:none",
          `${next.url}/org/one`,
          to,
        ]);
        assert.equal(result.code, 0, result.stderr);
        await next.cache.settled();
      };
      stand.codeHost.resetCalls();
      await through("third");
      assert.ok((await packs()).includes(base));
      assert.ok((await readdir(join(store, "corrupt"))).includes(later));
      await repositories.append(path, { commits: 1 });
      const result = await next.git([
        "clone",
        "-q",
        "--mirror",
        "--no-tags",
        `${next.url}/org/one`,
        "fourth",
      ]);
      assert.equal(result.code, 0, result.stderr);
      await next.cache.settled();
      // The delta that is missing, and what is new.
      const { bytesOut } = stand.codeHost.calls.filter((call) => call.command === "fetch").at(-1)!;
      assert.ok(bytesOut < 10_000, `a delta: ${bytesOut} bytes`);
      assert.equal(await contentOf(next.folder("fourth")), await contentOf(path));
      await git(["-C", store, "fsck", "--full", "--strict"]);
      assert.ok((await packs()).length > 1);
    } finally {
      await next.stop();
    }
  });

  it("does not reach a client: the code host responds, and nothing is stored [svc 2.32]", async () => {
    const { path } = await stand.codeHost.addRepository("org", "served", {
      build: (dir) => repositories.linear(dir),
    });
    stand.list("org", "served");
    const clone = async (to: string, options: readonly string[]): Promise<void> => {
      const result = await stand.git(["clone", "-q", ...options, `${stand.url}/org/served`, to]);
      assert.equal(result.code, 0, result.stderr);
      await git(["-C", stand.folder(to), "fsck", "--full", "--strict"]);
      await stand.cache.settled();
    };
    await clone("served-first", ["--mirror"]);
    await repositories.append(path, { commits: 2 });
    await clone("served-second", ["--mirror"]);
    const store = join(stand.storagePath, "org", "served.git");
    for (const file of await readdir(join(store, "objects", "pack"))) {
      if (file.endsWith(".pack")) await damage(join(store, "objects", "pack", file));
    }
    const errors = 'svc_cache_request_total{owner="org",repo="served",result="error"}';
    assert.equal(await stand.metric(errors), 0);
    const fetches = stand.upstream("fetch");
    await clone("served-third", ["--bare", "--filter=blob:limit=1m"]);
    assert.ok(stand.upstream("fetch") > fetches);
    assert.equal(await stand.metric(errors), 1);
    // The same request again, from the stored response of the code host.
    await clone("served-fourth", ["--bare", "--filter=blob:limit=1m"]);
    assert.equal(await contentOf(stand.folder("served-fourth")), await contentOf(path));
  });

  it("behind a reference to it breaks off one response; the next one is right", async () => {
    const { path } = await stand.codeHost.addRepository("org", "referred", {
      build: (dir) => repositories.bigBlobs(dir, { blobs: 8, bytes: 2 ** 20 }),
    });
    stand.list("org", "referred");
    await stand.post("org/referred", command("ls-refs", ["ref-prefix refs/heads/"]));
    const oid = await git(["-C", path, "rev-parse", "refs/heads/main"]);
    const fetch = command("fetch", ["no-progress", "ofs-delta", `want ${oid}`, "done"]);
    const { body: first } = await stand.post("org/referred", fetch);
    await stand.cache.settled();
    const responses = join(stand.storagePath, "_responses", "org", "referred");
    const [name = ""] = (await readdir(responses)).filter((each) => /^[0-9a-f]{64}$/.test(each));
    assert.ok((await stat(join(responses, name))).size < 64 * 1024, "it is a reference");
    const packs = join(stand.storagePath, "org", "referred.git", "objects", "pack");
    const [pack = ""] = (await readdir(packs)).filter((each) => each.endsWith(".pack"));
    await flip("its middle", (bytes) => bytes.length >> 1).apply(join(packs, pack));
    // The client tries again immediately.
    const answers = [await stand.post("org/referred", fetch), await stand.post("org/referred", fetch)];
    const [broken, next] = answers.map(({ body }) => packOf(body)) as [Buffer, Buffer];
    assert.ok(packOf(first).subarray(0, broken.length).equals(broken), "no wrong byte");
    assert.ok(next.equals(packOf(first)), "the next response is right");
    await stand.cache.settled();
    assert.ok(packOf((await stand.post("org/referred", fetch)).body).equals(packOf(first)));
    // The search for the damage goes on behind the requests.
    await until(async () => (await readdir(packs).catch(() => [])).length === 0);
  });
});

/** The bytes of the pack in a response, up to where it breaks off. */
function packOf(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  try {
    new FetchResponseWalker({ pack: (bytes) => parts.push(Buffer.from(bytes)) }).push(body);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
  }
  return Buffer.concat(parts);
}

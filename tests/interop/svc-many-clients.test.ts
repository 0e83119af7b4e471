import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { after, before, describe, it } from "node:test";
import { FetchResponseWalker } from "@devplat/git-protocol";
import { git, repositories } from "@devplat/testkit";
import { command, contentOf, startStand, type Stand } from "./svc-git-stand.ts";

const CLIENTS = 200;
const LS_REFS = command("ls-refs", ["ref-prefix HEAD", "ref-prefix refs/heads/", "ref-prefix refs/tags/"]);

interface Received {
  readonly status: number;
  readonly state: string;
  /** Digest of the complete response. */
  readonly digest: string;
  /** Without framing. */
  readonly pack: Buffer;
}

describe("200 concurrent clones", { timeout: 480_000 }, () => {
  let stand: Stand;
  before(async () => {
    stand = await startStand();
  });
  after(() => stand.stop());

  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  after(() => agent.destroy());

  const post = (name: string, body: Buffer): Promise<Received> => {
    const { promise, resolve, reject } = Promise.withResolvers<Received>();
    const outgoing = request(
      `${stand.url}/org/${name}/git-upload-pack`,
      {
        agent,
        method: "POST",
        headers: {
          "Content-Type": "application/x-git-upload-pack-request",
          "Git-Protocol": "version=2",
          "Content-Length": body.length,
        },
      },
      (response) => {
        const hash = createHash("sha256");
        const parts: Buffer[] = [];
        const walker = new FetchResponseWalker({ pack: (bytes) => void parts.push(Buffer.from(bytes)) });
        const isFetch = body !== LS_REFS;
        response.on("data", (chunk: Buffer) => {
          hash.update(chunk);
          if (isFetch) walker.push(chunk);
        });
        response.on("error", reject);
        response.on("end", () => {
          if (isFetch && !walker.complete) reject(new Error("the answer is cut"));
          resolve({
            status: response.statusCode ?? 0,
            state: String(response.headers["x-svc-cache"]),
            digest: hash.digest("hex"),
            pack: Buffer.concat(parts),
          });
        });
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
    return promise;
  };
  /** Fetches of as many clients. A tenth of them sends its own `ls-refs`; the authorization of the others is still valid. */
  const clones = async (name: string, fetches: readonly Buffer[]): Promise<Received[]> => {
    assert.equal((await post(name, LS_REFS)).status, 200);
    return await Promise.all(
      fetches.map(async (fetch, at) => {
        if (at % 10 === 1) assert.equal((await post(name, LS_REFS)).status, 200);
        return await post(name, fetch);
      }),
    );
  };
  /** Everything in a pack, by stock git, is everything in the repository. */
  const holds = async (name: string, path: string, pack: Buffer, tip: string): Promise<void> => {
    const folder = stand.folder(`${name}-unpacked`);
    await git(["init", "-q", "--bare", folder]);
    await writeFile(`${folder}/incoming.pack`, pack);
    await git(["-C", folder, "index-pack", "--strict", "--fix-thin", "--stdin"], { input: pack });
    await git(["-C", folder, "update-ref", "refs/heads/main", tip]);
    assert.equal(await contentOf(folder), await contentOf(path));
  };

  it("cold and warm: one upstream fetch, equal complete responses, one count each [svc 2.20]", async () => {
    const { path } = await stand.codeHost.addRepository("org", "r", {
      build: (dir) => repositories.linear(dir, { commits: 200 }),
    });
    stand.list("org", "r");
    const tip = await git(["-C", path, "rev-parse", "main"]);
    const fetch = command("fetch", ["no-progress", "ofs-delta", `want ${tip}`, "done"]);
    for (const round of ["cold", "warm"]) {
      const all = await clones(
        "r",
        Array.from({ length: CLIENTS }, () => fetch),
      );
      assert.deepEqual([...new Set(all.map(({ status }) => status))], [200]);
      assert.equal(new Set(all.map(({ digest }) => digest)).size, 1, round);
      const misses = all.filter(({ state }) => state === "miss").length;
      assert.equal(misses, round === "cold" ? 1 : 0);
      if (round === "warm") await holds("r", path, all[0]?.pack ?? Buffer.alloc(0), tip);
      assert.equal(stand.upstream("fetch"), 1);
    }
    await stand.cache.settled();
    const count = (result: string): Promise<number> =>
      stand.metric(`svc_cache_request_total{owner="org",repo="r",result="${result}"}`);
    assert.equal(await count("miss"), 1);
    assert.equal(await count("hit"), 2 * CLIENTS - 1);
    assert.equal(await contentOf(`${stand.storagePath}/org/r.git`), await contentOf(path));
  });

  it("no fetch fails or is wrong while the repository changes and packs are replaced [svc 3.4]", async () => {
    const { path } = await stand.codeHost.addRepository("org", "moving", {
      build: (dir) => repositories.merges(dir),
    });
    stand.list("org", "moving");
    const folders = ["one", "two", "three"].map((name) => stand.folder(name));
    for (const folder of folders) await git(["clone", "-q", "--mirror", `${stand.url}/org/moving`, folder]);
    for (let round = 0; round < 5; round++) {
      await stand.codeHost.push("org", "moving", { commits: 2 });
      const tip = await git(["-C", path, "rev-parse", "main"]);
      const fetches = Array.from({ length: 12 }, (_, at) =>
        command("fetch", [`deepen ${at + 1}`, `want ${tip}`, "done"]),
      );
      const mirrors = folders.map((folder) => git(["-C", folder, "fetch", "-q", "-p"]));
      for (const { status } of await clones("moving", fetches)) assert.equal(status, 200);
      await Promise.all(mirrors);
    }
    const truth = await contentOf(path);
    for (const folder of folders) assert.equal(await contentOf(folder), truth);
    await stand.cache.settled();
    await git(["-C", `${stand.storagePath}/org/moving.git`, "fsck", "--full", "--strict"]);
  });
});

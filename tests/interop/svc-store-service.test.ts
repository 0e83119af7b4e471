import assert from "node:assert/strict";
import { request, type IncomingMessage } from "node:http";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { git, repositories } from "@devplat/testkit";
import { FetchResponseWalker } from "@devplat/git-protocol";
import { command, contentOf, startStand, type Stand } from "./svc-git-stand.ts";

describe("packs of a repository that is fetched again and again", () => {
  let stand: Stand;
  let path: string;
  before(async () => {
    stand = await startStand();
    const build = (dir: string): Promise<void> => repositories.bigBlobs(dir, { blobs: 6, bytes: 2 ** 20 });
    ({ path } = await stand.codeHost.addRepository("org", "busy", { build }));
    stand.list("org", "busy");
    const result = await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/busy`, "mirror"]);
    assert.equal(result.code, 0, result.stderr);
    await stand.cache.settled();
  });
  after(() => stand.stop());

  const store = (): string => join(stand.storagePath, "org", "busy.git");
  const packs = async (): Promise<number> =>
    (await readdir(join(store(), "objects", "pack"))).filter((file) => file.endsWith(".pack")).length;

  /** Updates a mirror through the service, and waits for the service's background work. */
  async function fetch(): Promise<void> {
    const result = await stand.git(["-C", "mirror", "fetch", "-q", "--prune"]);
    assert.equal(result.code, 0, result.stderr);
    await stand.cache.settled();
  }

  it("are merged automatically while a slow client reads a response made from them", async () => {
    const tip = await git(["-C", path, "rev-parse", "main"]);
    // A request of its own, so that it is made from packs; taken slowly from its first bytes on.
    const body = command("fetch", [
      `want ${tip}`,
      "ofs-delta",
      "no-progress",
      "filter blob:limit=1g",
      "done",
    ]);
    const slow = await begin(body);
    for (let push = 0; push < 10; push++) {
      await repositories.append(path, { commits: 1, seed: push });
      await fetch();
    }
    assert.ok((await packs()) < 8, `${await packs()} packs after ten pushes`);
    const answer = await slow();
    assert.ok(answer.length > 6 * 2 ** 20);
    assert.equal(answer.subarray(-4).toString(), "0000");
    // A request of other clients for the same objects is answered with the same ones.
    const again = await stand.post("org/busy", body);
    assert.deepEqual(await objectsOf(answer), await objectsOf(again.body));
    await git(["-C", store(), "fsck", "--full", "--strict"]);
    assert.equal(await contentOf(stand.folder("mirror")), await contentOf(path));
  });

  it("a branch that upstream deleted leaves the store's refs with the next fetch", async () => {
    const refs = (): Promise<string> => git(["-C", store(), "for-each-ref", "--format=%(refname)"]);
    await git(["-C", path, "branch", "gone", "main~1"]);
    await repositories.append(path, { commits: 1, seed: 100 });
    await fetch();
    assert.match(await refs(), /refs\/heads\/gone/);
    await git(["-C", path, "branch", "-D", "gone"]);
    await repositories.append(path, { commits: 1, seed: 101 });
    await fetch();
    assert.doesNotMatch(await refs(), /refs\/heads\/gone/);
  });

  /** The ids of the objects in a response. */
  async function objectsOf(response: Buffer): Promise<string[]> {
    const folder = stand.folder("objects");
    await rm(folder, { recursive: true, force: true });
    await git(["init", "-q", "--bare", folder]);
    const parts: Buffer[] = [];
    new FetchResponseWalker({ pack: (bytes) => parts.push(Buffer.from(bytes)) }).push(response);
    const pack = join(folder, "objects", "pack", "pack-1.pack");
    await writeFile(pack, Buffer.concat(parts));
    await git(["-C", folder, "index-pack", pack]);
    const ids = await git(["-C", folder, "cat-file", "--batch-all-objects", "--batch-check"]);
    return ids.split("\n");
  }

  /** Sends a request and waits for the first bytes. @returns what takes the rest */
  async function begin(body: Buffer): Promise<() => Promise<Buffer>> {
    const parts: Buffer[] = [];
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = request(
        `${stand.url}/org/busy/git-upload-pack`,
        {
          method: "POST",
          agent: false,
          headers: {
            "Content-Type": "application/x-git-upload-pack-request",
            "Git-Protocol": "version=2",
          },
        },
        resolve,
      );
      outgoing.on("error", reject);
      outgoing.end(body);
    });
    assert.equal(response.headers["x-svc-cache"], "hit");
    await new Promise<void>((resolve) => response.once("readable", resolve));
    return async () => {
      for await (const chunk of response) parts.push(chunk as Buffer);
      return Buffer.concat(parts);
    };
  }
});

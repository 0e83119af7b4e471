import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { FetchResponseWalker } from "@devplat/git-protocol";
import { git } from "@devplat/testkit";
import { command, startStand, type Answer, type Stand } from "./svc-git-stand.ts";

let stand: Stand;
let path = "";
before(async () => {
  stand = await startStand({ listed: ["r"] });
  ({ path } = await stand.codeHost.addRepository("org", "r"));
  const cloned = await stand.git(["clone", "-q", "--bare", `${stand.url}/org/r`, "warm"]);
  assert.equal(cloned.code, 0, cloned.stderr);
  await stand.cache.settled();
});
after(() => stand.stop());

/** The requests of `git clone --revision` in git 2.55, as its packet trace shows them. */
async function cloneRevision(prefix: string, want: string): Promise<Answer> {
  const refs = await stand.post(
    "org/r",
    command("ls-refs", ["peel", "symrefs", "unborn", `ref-prefix ${prefix}`]),
  );
  assert.equal(refs.status, 200);
  return await stand.post("org/r", command("fetch", ["thin-pack", "no-progress", "ofs-delta", want, "done"]));
}

it("git clone --revision of an old commit and of a ref is answered from the mirror", async () => {
  for (const [at, [revision, prefix, byRef]] of (
    [
      ["refs/heads/main~1", "HEAD", false],
      ["refs/heads/main", "refs/heads/main", true],
    ] as const
  ).entries()) {
    const oid = await git(["-C", path, "rev-parse", revision]);
    stand.codeHost.resetCalls();
    const answer = await cloneRevision(prefix, byRef ? `want-ref ${revision}` : `want ${oid}`);
    assert.equal(answer.headers["x-svc-cache"], "hit", revision);
    assert.equal(stand.upstream("fetch"), 0);
    const parts: Buffer[] = [];
    const walker = new FetchResponseWalker({ pack: (bytes) => void parts.push(Buffer.from(bytes)) });
    walker.push(answer.body);
    assert.ok(walker.complete);
    const folder = stand.folder(`revision-${at}`);
    await git(["init", "-q", "--bare", folder]);
    const pack = join(folder, "objects", "pack", "pack-answer.pack");
    await writeFile(pack, Buffer.concat(parts));
    await git(["-C", folder, "index-pack", "--strict", pack]);
    const list = ["rev-list", "--objects", "--no-object-names", oid];
    assert.equal(await git(["-C", folder, ...list]), await git(["-C", path, ...list]));
  }
});

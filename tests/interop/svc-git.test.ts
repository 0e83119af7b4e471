import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { repositories } from "@devplat/testkit";
import { contentOf, startStand, type Stand } from "./svc-git-stand.ts";

describe("clones through the cache", () => {
  let stand: Stand;
  before(async () => {
    stand = await startStand();
  });
  after(() => stand.stop());

  for (const [name, build] of Object.entries({
    linear: repositories.linear,
    merges: repositories.merges,
    tags: repositories.tags,
    sha256: repositories.sha256,
    bigblobs: repositories.bigBlobs,
    submodules: repositories.submodules,
  })) {
    it(`a second clone of ${name} is a hit without a fetch, and equals a direct one`, async () => {
      const { url } = await stand.codeHost.addRepository("Org", name, { build: (dir) => build(dir) });
      stand.list("org", name);
      stand.codeHost.resetCalls();
      const contents: string[] = [];
      for (const [folder, from] of [
        ["first", `${stand.url}/Org/${name}.git`],
        ["second", `${stand.url}/org/${name}`],
        ["direct", url],
      ] as const) {
        const result = await stand.git(["clone", "-q", "--mirror", from, `${name}-${folder}`]);
        assert.equal(result.code, 0, result.stderr);
        if (folder === "second") assert.equal(stand.upstream("fetch"), 1);
        contents.push(await contentOf(stand.folder(`${name}-${folder}`)));
      }
      assert.equal(contents[0], contents[2]);
      assert.equal(contents[1], contents[2]);
      const labels = `owner="org",repo="${name}"`;
      assert.equal(await stand.metric(`svc_cache_request_total{${labels},result="miss"}`), 1);
      assert.equal(await stand.metric(`svc_cache_request_total{${labels},result="hit"}`), 1);
    });
  }
});

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { git } from "@devplat/testkit";
import { buildRepository, git as gitSync, temporaryFolder } from "../../test/git.test-kit.ts";
import { serve } from "../../test/push.test-kit.ts";
import { Repository } from "../repository/repository.ts";

for (const format of ["sha1", "sha256"] as const) {
  describe(`annotated tags of loose refs, ${format}`, () => {
    it("are peeled as stock git does, and fetches follow them", async () => {
      using folder = temporaryFolder();
      const path = buildRepository(folder.path, format);
      const repository = await Repository.open(path);
      const server = await serve({ repository: () => repository, push: { authorize: () => undefined } });
      try {
        const url = `${server.url}/demo`;
        const work = join(folder.path, "work");
        const other = join(folder.path, "other");
        await git(["clone", "-q", url, work]);
        await git(["clone", "-q", url, other]);
        await git(["-C", work, "commit", "-q", "--allow-empty", "-m", "more"]);
        await git(["-C", work, "tag", "-a", "-m", "pushed", "pushed"]);
        await git(["-C", work, "push", "-q", "origin", "HEAD:main", "pushed"]);
        // Loose objects of another program.
        gitSync(path, ["tag", "-a", "-m", "loose", "loose", "main"]);
        gitSync(path, ["tag", "-a", "-m", "nested", "nested", "loose"]);
        gitSync(path, ["tag", "-a", "-m", "of a tree", "tree", "main^{tree}"]);
        for (const version of [0, 2]) {
          const list = async (from: string): Promise<string> =>
            git(["-c", `protocol.version=${version}`, "ls-remote", from]);
          const ours = await list(url);
          assert.match(ours, /refs\/tags\/pushed\^\{\}/);
          assert.equal(ours, await list(path));
        }
        await git(["-C", other, "fetch", "-q"]);
        for (const tag of ["pushed", "loose", "nested"]) {
          assert.equal(await git(["-C", other, "rev-parse", tag]), await git(["-C", path, "rev-parse", tag]));
        }
      } finally {
        await server.stop();
        repository.close();
      }
    });
  });
}

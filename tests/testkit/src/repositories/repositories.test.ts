import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { join } from "node:path";
import { git } from "../process.ts";
import { tempFolder, type TempFolder } from "../temp-folder.ts";
import * as repositories from "./repositories.ts";

describe("repository builders", () => {
  let folder: TempFolder;
  before(async () => {
    folder = await tempFolder("repositories");
  });
  after(() => folder.remove());
  const inFolder = (name: string): string => join(folder.path, name);

  const { append, ...builders } = repositories;
  for (const [name, build] of Object.entries(builders)) {
    it(`${name} gives a repository that git fsck finds clean, with equal ids each time`, async () => {
      const refs: string[] = [];
      for (const copy of ["first", "second"]) {
        const dir = inFolder(`${name}-${copy}`);
        await build(dir);
        await git(["-C", dir, "fsck", "--strict", "--no-dangling"]);
        refs.push(await git(["-C", dir, "for-each-ref"]));
      }
      assert.equal(refs[0], refs[1]);
      assert.equal(refs[0] === "", name === "empty");
    });
  }

  it("builders have what their names say", async () => {
    const count = async (name: string, ...args: string[]): Promise<number> =>
      Number(await git(["-C", inFolder(`${name}-first`), "rev-list", "--count", ...args]));
    const read = (name: string, ...args: string[]) => git(["-C", inFolder(`${name}-first`), ...args]);
    assert.equal(await count("linear", "main"), 20);
    assert.ok((await count("merges", "--min-parents=2", "main")) > 5);
    assert.equal(await count("merges", "--min-parents=3", "main"), 1);
    assert.equal((await read("manyRefs", "for-each-ref")).split("\n").length, 2000);
    assert.equal(await read("sha256", "rev-parse", "--show-object-format"), "sha256");
    assert.match(await read("submodules", "ls-tree", "main"), /^160000 commit 1{40}\tlibrary$/m);
    assert.match(await read("tags", "cat-file", "tag", "nested"), /^type tag$/m);
    assert.equal(await read("tags", "cat-file", "-t", "tree^{}"), "tree");
    assert.equal(await read("tags", "cat-file", "-t", "blob"), "blob");
    assert.equal(await read("empty", "symbolic-ref", "HEAD"), "refs/heads/main");
  });

  it("linear with another seed gives other objects", async () => {
    const [one, two] = [inFolder("seed-1"), inFolder("seed-2")];
    await repositories.linear(one);
    await repositories.linear(two, { seed: 2 });
    assert.notEqual(await git(["-C", one, "rev-parse", "main"]), await git(["-C", two, "rev-parse", "main"]));
  });

  it("append adds its number of commits on top of the branch", async () => {
    const dir = inFolder("appended");
    await repositories.linear(dir);
    const earlier = await git(["-C", dir, "rev-parse", "main"]);
    await append(dir, { commits: 3 });
    assert.equal(await git(["-C", dir, "rev-list", "--count", `${earlier}..main`]), "3");
    await git(["-C", dir, "fsck", "--strict", "--no-dangling"]);
  });
});

import assert from "node:assert/strict";
import { join } from "node:path";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { git, temporaryFolder } from "../../test/git.test-kit.ts";
import { Repository } from "../repository/repository.ts";
import { PackReader } from "./pack-reader.ts";

test("objects of long delta chains read the same with and without cached bases", async () => {
  using temporary = temporaryFolder();
  const folder = temporary.path;
  git(folder, ["init", "-q"]);
  const lines = Array.from({ length: 400 }, (_, n) => `line ${n} ${Math.sin(n)}`);
  for (let version = 0; version < 24; version++) {
    lines[(version * 17) % lines.length] = `changed ${version}`;
    lines.push(...Array.from({ length: version * 3 }, (_, n) => `more ${version} ${Math.cos(n)}`));
    writeFileSync(join(folder, "file"), lines.join("\n"));
    git(folder, ["add", "file"]);
    git(folder, ["-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", `${version}`]);
  }
  git(folder, ["repack", "-qadf", "--depth=50", "--window=2"]);
  const repository = await Repository.open(join(folder, ".git"));
  const [pack] = repository.objects.packs;
  let longest = 0;
  const shared = new PackReader();
  for (let position = 0; position < pack!.count; position++) {
    let links = 0;
    for (let at = shared.entry(pack!, position).base; at >= 0; links++) at = shared.entry(pack!, at).base;
    longest = Math.max(longest, links);
    const expected = new PackReader().read(pack!, position);
    for (const reader of [new PackReader(), shared]) {
      const first = reader.read(pack!, position, true);
      assert.equal(first.type, expected.type);
      assert.ok(first.content.equals(expected.content));
    }
  }
  assert.ok(longest > 4, `the longest chain has ${longest} deltas`);
  // Later reads overwrite nothing that is cached.
  for (let position = pack!.count - 1; position >= 0; position--) {
    assert.deepEqual(shared.read(pack!, position), new PackReader().read(pack!, position));
  }
  repository.close();
});

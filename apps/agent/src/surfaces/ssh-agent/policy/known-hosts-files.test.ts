import assert from "node:assert/strict";
import { mkdir, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { silentLogger } from "@devplat/base";
import { keysFolder } from "../server/ssh-agent.test-kit.ts";
import { KnownHostsFiles } from "./known-hosts-files.ts";

const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGVjaG8gZWNobyBlY2hvIGVjaG8gZWNobyBlY2hv";

describe("KnownHostsFiles", () => {
  it("reads all files, and each again when it has changed", async () => {
    await using folder = await keysFolder();
    const [one, two] = [join(folder.path, "one"), join(folder.path, "two")];
    const files = new KnownHostsFiles([one, two], silentLogger);
    const names = async (): Promise<string[]> =>
      (await files.lines()).flatMap(({ names: each }) => (each.kind === "patterns" ? each.patterns : []));
    assert.deepEqual(await names(), []);
    await writeFile(one, `a ${KEY}\nnot a line\n`);
    await writeFile(two, `# comment\nb ${KEY}\n`);
    assert.deepEqual(await names(), ["a", "b"]);
    await writeFile(one, `a,c ${KEY}\n`);
    assert.deepEqual(await names(), ["a", "c", "b"]);
    await rm(one);
    assert.deepEqual(await names(), ["b"]);
  });

  it("a file that is not one, or is too long, has no lines and hides no other", async () => {
    await using folder = await keysFolder();
    const [directory, long, good] = ["directory", "long", "good"].map((name) => join(folder.path, name)) as [
      string,
      string,
      string,
    ];
    await mkdir(directory);
    await writeFile(long, `a ${KEY}\n`);
    await truncate(long, 16 * 1024 * 1024 + 1);
    await writeFile(good, `b ${KEY}\n`);
    assert.equal((await new KnownHostsFiles([directory, long, good], silentLogger).lines()).length, 1);
  });
});

import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { NameSetFile } from "./name-set-file.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "names-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe("NameSetFile", () => {
  it("changes at the same time are all kept [agent 17.3]", async () => {
    const subject = new NameSetFile(join(folder, "names.json"), "names");
    const names = ["a", "b", "c", "d"];
    await Promise.all(names.map((name) => subject.set(name, true)));
    assert.deepEqual([...(await subject.read())], names);
    await Promise.all([subject.set("a", false), subject.set("e", true), subject.set("b", false)]);
    assert.deepEqual([...(await subject.read())], ["c", "d", "e"]);
  });

  it("continues after a change that failed", async () => {
    await writeFile(join(folder, "file"), "");
    const subject = new NameSetFile(join(folder, "file/names.json"), "names");
    await assert.rejects(subject.set("a", true));
    await rm(join(folder, "file"));
    assert.equal(await subject.set("a", true), true);
  });

  it("is 0600, says whether it changed, and is empty when it is damaged", async () => {
    const path = join(folder, "names.json");
    const subject = new NameSetFile(path, "names");
    assert.deepEqual([await subject.set("a", true), await subject.set("a", true)], [true, false]);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    await writeFile(path, "{");
    assert.deepEqual([...(await subject.read())], []);
  });
});

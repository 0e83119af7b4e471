import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, readFile, stat, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { AgentError } from "../errors.ts";
import { WriterLock } from "./lock.ts";
import { workspace, yaml, type Workspace } from "./workspace.test-kit.ts";

let w: Workspace;
beforeEach(async () => {
  w = await workspace();
});
afterEach(() => w.remove());

describe("the state file", () => {
  it("after concurrent saves it holds the last document", async () => {
    const { state } = await w.engine([]);
    const saves = Array.from({ length: 20 }, (_, i) => {
      state.document.last_error = `${"x".repeat(((i * 7919) % 20) * 5000)} ${i}`;
      return state.save();
    });
    await Promise.all(saves);
    const { state: again } = await w.engine([]);
    assert.match(again.document.last_error ?? "", / 19$/);
  });

  for (const [name, content] of [
    ["lost", undefined],
    ["corrupt", "{"],
    ["of another schema", '{"schema": 99}'],
    ["of wrong types", '{"schema": 1, "rules": 3}'],
  ] as const) {
    it(`${name}: rebuilt without rewriting equal files [agent 16.7]`, async () => {
      await w.put("k", { token: "t" });
      await w.cycle([yaml("a", "k")]);
      const before = await stat(join(w.home, "f.yaml"), { bigint: true });
      const path = join(w.places.state, "state.json");
      if (content === undefined) await unlink(path);
      else await writeFile(path, content);
      assert.deepEqual((await w.cycle([yaml("a", "k")])).unchanged, ["a"]);
      const after = await stat(join(w.home, "f.yaml"), { bigint: true });
      assert.deepEqual([after.ino, after.mtimeNs], [before.ino, before.mtimeNs]);
      assert.equal(JSON.parse(await readFile(path, "utf8")).rules.a.state, "ok");
    });
  }

  it("a pipe in its place: does not block the read, and is replaced", async () => {
    await w.put("k", { token: "t" });
    await w.cycle([yaml("a", "k")]);
    const path = join(w.places.state, "state.json");
    await unlink(path);
    execFileSync("mkfifo", [path]);
    assert.deepEqual((await w.cycle([yaml("a", "k")])).unchanged, ["a"]);
    assert.equal(JSON.parse(await readFile(path, "utf8")).rules.a.state, "ok");
  });

  for (const name of ["state.json", "hmac.key", "lock.db"]) {
    it(`a folder in the place of ${name}: the error names it`, async () => {
      await w.put("k", { token: "t" });
      await mkdir(join(w.places.state, name), { recursive: true });
      const named = new RegExp(`^cannot (?:use|lock) .*/${name.replace(".", "\\.")}\\b`);
      await assert.rejects(
        name === "lock.db" ? WriterLock.acquire(w.places.state, 0) : w.cycle([yaml("a", "k")]),
        (error) => error instanceof AgentError && named.test(error.message) && error.hint !== undefined,
      );
    });
  }

  it("lost: only what the rule sets now is taken for its own again [agent 16.8]", async () => {
    const clean = yaml("a", "k", "~/f.yaml", { on_remove: "clean" });
    await w.put("k", { kept: "one", dropped: "two" });
    await w.cycle([clean]);
    await unlink(join(w.places.state, "state.json"));
    await w.put("k", { kept: "one" });
    await w.cycle([clean]);
    assert.equal(await w.read("f.yaml"), "kept: one\ndropped: two\n", "it may be anybody's");
    await w.cycle([]);
    assert.equal(await w.read("f.yaml"), "dropped: two\n");
  });

  it("holds no value and no plain hash, and is 0600 [agent 16.6]", async () => {
    await w.put("k", { token: "hunter2" });
    await w.cycle([yaml("a", "k")]);
    const path = join(w.places.state, "state.json");
    assert.doesNotMatch(await readFile(path, "utf8"), /hunter2/);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.equal((await stat(w.places.state)).mode & 0o777, 0o700);
  });
});

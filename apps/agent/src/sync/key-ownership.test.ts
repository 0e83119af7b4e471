import assert from "node:assert/strict";
import { symlink, unlink } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { workspace, yaml, type Workspace } from "./workspace.test-kit.ts";

let w: Workspace;
beforeEach(async () => {
  w = await workspace();
});
afterEach(() => w.remove());

describe("ownership of keys", () => {
  it("on_remove clean: a removed rule takes its keys with it, a removed field too [agent 14.25]", async () => {
    await w.put("k", { token: "t", user: "u" });
    await w.file("f.yaml", "mine: 1\n");
    const clean = yaml("a", "k", "~/f.yaml", { on_remove: "clean" });
    await w.cycle([clean]);
    await w.put("k", { token: "t" });
    await w.cycle([clean]);
    assert.equal(await w.read("f.yaml"), "mine: 1\ntoken: t\n");
    await w.cycle([]);
    assert.equal(await w.read("f.yaml"), "mine: 1\n");
    assert.deepEqual((await w.engine([])).state.document.rules, {});
  });

  const lists: [string, string, string, string][] = [
    ["an entry with nothing but its key", "users:\n  - name: dev\n", "", "users:\n  - name: dev\n"],
    [
      "an entry whose other field the rule replaces",
      "users:\n  - name: dev\n    token: old # mine\n",
      "",
      "users:\n  - name: dev\n    # mine\n",
    ],
    [
      "an entry with fields that the rule sets to what they are",
      "users:\n  - name: dev\n    server: s\n    more: {note: 1}\n",
      "    server: s\n    more: {note: 1}\n",
      "users:\n  - name: dev\n    server: s\n    more: {note: 1}\n",
    ],
    [
      "an entry that is not the rule's, and the list",
      "users:\n  - name: other\n    token: x\n",
      "    server: s\n",
      "users:\n  - name: other\n    token: x\n",
    ],
    ["no entry, and what the rule brought goes", "mine: 1\n", "    server: s\n", "mine: 1\n"],
  ];
  for (const [name, existing, more, left] of lists) {
    it(`on_remove clean with lists: keeps ${name} [agent 14.26]`, async () => {
      const clean = (fields: string): unknown =>
        yaml("a", "k", "~/f.yaml", {
          on_remove: "clean",
          lists: { users: "name" },
          template: `users:\n  - name: dev\n${fields}    token: {{ .token }}\n`,
        });
      await w.file("f.yaml", existing);
      await w.put("k", { token: "one" });
      await w.cycle([clean(more)]);
      assert.match(await w.read("f.yaml"), /token: one/);
      await w.put("k", { token: "two" });
      await w.cycle([clean(more)]);
      assert.match(await w.read("f.yaml"), /token: two/);
      await w.cycle([]);
      assert.equal(await w.read("f.yaml"), left);
    });
  }

  it("on_remove clean with lists: a renamed rule still removes the entry that it made", async () => {
    const named = (name: string): unknown =>
      yaml(name, "k", "~/f.yaml", {
        on_remove: "clean",
        lists: { users: "name" },
        template: "users:\n  - {name: dev, token: '{{ .token }}'}\n",
      });
    await w.file("f.yaml", "mine: 1\n");
    await w.put("k", { token: "one" });
    await w.cycle([named("a")]);
    await w.cycle([named("b")]);
    await w.cycle([]);
    assert.equal(await w.read("f.yaml"), "mine: 1\n");
  });

  it("on_remove clean with lists: a field that the rule changed later is its own", async () => {
    const clean = yaml("a", "k", "~/f.yaml", {
      on_remove: "clean",
      lists: { users: "name" },
      template: "users:\n  - name: dev\n    user: {{ .user }}\n    token: {{ .token }}\n",
    });
    await w.file("f.yaml", "users:\n  - name: dev\n    user: u\n");
    await w.put("k", { token: "one", user: "u" });
    await w.cycle([clean]);
    await w.put("k", { token: "one", user: "secret" });
    await w.cycle([clean]);
    await w.cycle([]);
    assert.equal(await w.read("f.yaml"), "users:\n  - name: dev\n");
  });

  it("on_remove clean with lists: after a loss of state no value stays behind [agent 14.26]", async () => {
    const clean = yaml("a", "k", "~/f.yaml", {
      on_remove: "clean",
      lists: { users: "name" },
      template: "users:\n  - name: dev\n    token: {{ .token }}\n",
    });
    await w.put("k", { token: "one" });
    await w.cycle([clean]);
    await unlink(join(w.places.state, "state.json"));
    await w.cycle([clean]);
    await w.cycle([]);
    assert.equal(await w.read("f.yaml"), "users:\n  - name: dev\n");
  });

  it("on_remove keep: they stay [agent 14.26]", async () => {
    await w.put("k", { token: "t" });
    await w.cycle([yaml("a", "k")]);
    await w.cycle([]);
    assert.equal(await w.read("f.yaml"), "token: t\n");
  });

  it("a renamed rule keeps its keys where they are", async () => {
    await w.put("k", { token: "t" });
    await w.file("f.yaml", "token: x # here\nmine: 1\n");
    await w.cycle([yaml("a", "k", "~/f.yaml", { on_remove: "clean" })]);
    await w.cycle([yaml("b", "k", "~/f.yaml", { on_remove: "clean" })]);
    assert.equal(await w.read("f.yaml"), "token: t # here\nmine: 1\n");
  });

  it("a rule that moves to another file cleans up in the former one", async () => {
    await w.put("k", { token: "t" });
    await w.file("f.yaml", "mine: 1\n");
    await w.cycle([yaml("a", "k", "~/f.yaml", { on_remove: "clean" })]);
    await w.cycle([yaml("a", "k", "~/g.yaml", { on_remove: "clean" })]);
    await w.cycle([yaml("a", "k", "~/g.yaml", { on_remove: "clean" })]);
    assert.equal(await w.read("f.yaml"), "mine: 1\n");
    assert.equal(await w.read("g.yaml"), "token: t\n");
  });

  it("two rules on one file are one edit [agent 13.11]", async () => {
    await w.put("k", { one: "1st" });
    await w.put("l", { two: "2nd" });
    await w.file("f.yaml", "# c\n");
    const result = await w.cycle([yaml("a", "k"), yaml("b", "l")]);
    assert.deepEqual(result.changed, ["a", "b"]);
    assert.equal(await w.read("f.yaml"), "# c\none: 1st\ntwo: 2nd\n");
    assert.deepEqual((await w.cycle([yaml("a", "k"), yaml("b", "l")])).unchanged, ["a", "b"]);
  });

  it("two rules that set the same key both fail and name each other [agent 13.11]", async () => {
    await w.put("k", { token: "1" });
    await w.put("l", { token: "2" });
    const result = await w.cycle([yaml("a", "k"), yaml("b", "l")]);
    assert.deepEqual(result.failed, ["a", "b"]);
    assert.equal(
      await w.errorOf("a"),
      "rule 'b' sets the key token of the same file. A key can belong to one rule only.",
    );
    await assert.rejects(w.read("f.yaml"), { code: "ENOENT" });
  });

  it("two paths to one file over a link are one file", async () => {
    await w.put("k", { token: "1" });
    await w.put("l", { other: "2" });
    await w.file("real.yaml", "");
    await symlink("real.yaml", join(w.home, "link.yaml"));
    await w.cycle([yaml("a", "k", "~/real.yaml"), yaml("b", "l", "~/link.yaml")]);
    assert.match(await w.read("real.yaml"), /token: "1"\nother: "2"\n/);
  });
});

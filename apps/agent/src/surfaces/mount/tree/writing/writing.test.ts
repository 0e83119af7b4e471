import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FileError, StoreFault } from "../file-error.ts";
import { WritingStand } from "./writing.test-kit.ts";

const KEY = { "demo/key": '{"a":"1","b":2}' };
const fails =
  (name: string) =>
  (error: Error): boolean =>
    error instanceof FileError && error.errno === new FileError(name as "EIO").errno;

describe("a secret that is written on the mount", () => {
  it("is stored when the file is closed, once", async () => {
    const stand = new WritingStand(KEY);
    const handle = await stand.open("demo/key.json");
    handle.draft.buffer.resize(0);
    stand.write(handle, '{"a":');
    stand.write(handle, ' "new"}', 5);
    assert.equal(await stand.text("demo/key.json"), '{\n  "a": "1",\n  "b": 2\n}\n');
    const { files } = stand.writing.changes;
    await files.flush(handle);
    await files.flush(handle);
    await files.sync(handle);
    await files.release(handle);
    assert.equal(stand.stored("demo/key"), '{"a":"new"}');
    assert.equal(stand.store.secrets.get("demo/key")?.version, 2);
    assert.equal(await stand.text("demo/key.json"), '{\n  "a": "new"\n}\n');
    assert.ok(stand.expired.includes("key.json"));
  });

  it("is not stored a second time when the response to the first try was lost", async () => {
    const stand = new WritingStand(KEY);
    const handle = await stand.open("demo/key.json");
    handle.draft.buffer.resize(0);
    stand.write(handle, '{"a":"x"}');
    stand.store.after = ({ kind }) => {
      if (kind === "write") throw new FileError("ETIMEDOUT");
    };
    await assert.rejects(stand.sync(handle), fails("ETIMEDOUT"));
    assert.equal(stand.writing.report()[0]?.reason, "the store cannot be reached");
    stand.store.after = () => undefined;
    await stand.sync(handle);
    assert.deepEqual(stand.store.secrets.get("demo/key"), { version: 2, fields: '{"a":"x"}' });
    assert.deepEqual(stand.writing.report(), []);
  });

  it("stays as somebody else has written it, and the text is kept", async () => {
    const stand = new WritingStand(KEY);
    const handle = await stand.open("demo/key.json");
    handle.draft.buffer.resize(0);
    stand.write(handle, '{"a":"mine"}');
    stand.store.secrets.set("demo/key", { version: 2, fields: '{"a":"theirs"}' });
    await assert.rejects(stand.close(handle), fails("ESTALE"));
    assert.equal(stand.stored("demo/key"), '{"a":"theirs"}');
    assert.equal(await stand.text("demo/.key.json.conflict"), '{"a":"mine"}');
    await stand.remove("demo/.key.json.conflict");
    assert.deepEqual(stand.writing.report(), []);
  });

  it("gives each handle its own bytes, and the first close wins", async () => {
    const stand = new WritingStand(KEY);
    const [one, other] = [await stand.open("demo/key.json"), await stand.open("demo/key.json")];
    assert.notEqual(one.node.id, other.node.id);
    for (const { draft } of [one, other]) draft.buffer.resize(0);
    stand.write(one, '{"a":"1","b":3}');
    stand.write(other, '{"a":"1","b":4}');
    await stand.close(one);
    await assert.rejects(stand.close(other), fails("ESTALE"));
    assert.equal(stand.stored("demo/key"), '{"a":"1","b":3}');
  });

  it("cannot be written while an enrolment owns it", async () => {
    const stand = new WritingStand(KEY);
    stand.owned.add("demo/key");
    for (const change of [
      () => stand.open("demo/key.json"),
      () => stand.open("demo/key.d/a"),
      () => stand.create("demo/key.d/new"),
      () => stand.remove("demo/key.json"),
      () => stand.remove("demo/key.d/a"),
      () => stand.rename("demo/key.json", "demo/key.json~"),
      () => stand.rename("demo/key.json", "demo/other.json"),
    ])
      await assert.rejects(change, fails("EACCES"));
    await stand.makeFile("demo/x.tmp", "{}");
    await assert.rejects(stand.rename("demo/x.tmp", "demo/key.json"), fails("EACCES"));
    assert.equal(stand.stored("demo/key"), KEY["demo/key"]);
  });

  it("is refused over 1 MiB, and files in memory over 8 MiB", async () => {
    const stand = new WritingStand(KEY);
    const handle = await stand.open("demo/key.json");
    assert.throws(() => stand.write(handle, "x", 1024 * 1024), fails("EFBIG"));
    const [one, other] = [await stand.create("big"), await stand.create("other")];
    one.draft.buffer.resize(8 * 1024 * 1024 - 1000);
    assert.throws(() => other.draft.buffer.resize(1000), fails("ENOSPC"));
    await stand.remove("big");
    assert.throws(() => other.draft.buffer.resize(1000), fails("ENOSPC"));
    await stand.close(one);
    other.draft.buffer.resize(1000);
  });
});

describe("a field that is written on the mount", () => {
  it("is stored with the other fields as they are then", async () => {
    const stand = new WritingStand(KEY);
    const [a, b] = [await stand.open("demo/key.d/a"), await stand.open("demo/key.d/b")];
    stand.write(a, "9");
    stand.write(b, "8");
    await stand.close(a);
    await stand.close(b);
    assert.equal(stand.stored("demo/key"), '{"a":"9","b":8}');
  });

  it("is tried again while somebody else changes other fields", async () => {
    const stand = new WritingStand(KEY);
    let others = 3;
    stand.store.before = ({ kind }) => {
      if (kind === "write" && others-- > 0)
        stand.store.secrets.set("demo/key", {
          version: 10 - others,
          fields: `{"a":"1","b":2,"c":${others}}`,
        });
    };
    await stand.replace("demo/key.d/a", "mine");
    assert.equal(stand.stored("demo/key"), '{"a":"mine","b":2,"c":0}');
  });

  it("is refused if somebody else has changed it", async () => {
    const stand = new WritingStand(KEY);
    const handle = await stand.open("demo/key.d/a");
    stand.write(handle, "mine");
    stand.store.secrets.set("demo/key", { version: 2, fields: '{"a":"theirs"}' });
    await assert.rejects(stand.close(handle), fails("ESTALE"));
    assert.equal(await stand.text("demo/key.d/.a.conflict"), "mine");
  });

  it("becomes another one by a rename, in one version", async () => {
    const stand = new WritingStand(KEY);
    await stand.rename("demo/key.d/a", "demo/key.d/b");
    assert.deepEqual(stand.store.secrets.get("demo/key"), { version: 2, fields: '{"b":"1"}' });
    await assert.rejects(stand.remove("demo/key.d/b"), fails("EPERM"));
  });
});

describe("a new file on the mount", () => {
  it("is stored 2 s after its last write, and only then", async () => {
    const stand = new WritingStand(KEY);
    const handle = await stand.create("demo/new.json", '{"n":1');
    await stand.pass(1900);
    stand.write(handle, "}", 6);
    await stand.close(handle);
    await stand.pass(1900);
    assert.equal(stand.stored("demo/new"), undefined);
    assert.match(stand.writing.report()[0]?.reason ?? "", /2 s after its last write/);
    await stand.pass(100);
    assert.equal(stand.stored("demo/new"), '{"n":1}');
    assert.deepEqual(stand.writing.report(), []);
    assert.ok(stand.overlay.isEmpty);
  });

  it("keeps its name and is tried again while the store is away", async () => {
    const stand = new WritingStand(KEY);
    stand.store.before = ({ kind }) => {
      if (kind === "write") throw new StoreFault("unavailable");
    };
    await stand.makeFile("demo/new.json", '{"n":1}');
    await stand.pass(2000);
    assert.equal(await stand.text("demo/new.json"), '{"n":1}');
    assert.deepEqual(stand.writing.report(), [
      { path: "demo/new.json", reason: "the store cannot be reached" },
    ]);
    stand.store.before = () => undefined;
    await stand.pass(4000);
    assert.equal(stand.stored("demo/new"), '{"n":1}');
  });

  it("is kept under another name when it is refused", async () => {
    const stand = new WritingStand(KEY);
    await stand.makeFile("demo/new.json", "no json");
    await stand.pass(2000);
    assert.equal(await stand.text("demo/new.json"), undefined);
    assert.equal(await stand.text("demo/.new.json.rejected"), "no json");
    await stand.makeFile("demo/other.json", '{"n":1}');
    stand.store.secrets.set("demo/other", { version: 1, fields: '{"theirs":1}' });
    await stand.pass(2000);
    assert.equal(await stand.text("demo/.other.json.conflict"), '{"n":1}');
    assert.equal(stand.stored("demo/other"), '{"theirs":1}');
  });

  it("stays in memory under a name that an editor uses, or below such a directory", async () => {
    const stand = new WritingStand(KEY);
    for (const name of [
      ".key.json.swp",
      "#key.json#",
      "key.json~",
      "key.tmp.json",
      "4913",
      "plain",
      "k___jb_tmp___",
    ])
      await stand.makeFile(`demo/${name}`, "{}");
    await stand.makeDirectory(".git");
    await stand.makeFile(".git/config.json", "{}");
    await stand.pass(60_000);
    assert.deepEqual([...stand.store.secrets.keys()], ["demo/key"]);
    assert.deepEqual(stand.writing.report(), []);
    await assert.rejects(stand.create("demo/a\\b.json"), fails("EINVAL"));
  });

  it("is not stored while it is empty", async () => {
    const stand = new WritingStand(KEY);
    await stand.makeFile("demo/new.json", "");
    await stand.pass(60_000);
    assert.deepEqual(stand.writing.report(), [{ path: "demo/new.json", reason: "it is empty" }]);
    assert.equal(await stand.text("demo/new.json"), "");
  });
});

describe("a file that replaces a removed secret", () => {
  it("is stored when it is closed, as tar and git replace files", async () => {
    const stand = new WritingStand(KEY);
    await stand.remove("demo/key.json");
    await stand.makeFile("demo/key.json", '{"n":1}');
    assert.equal(stand.stored("demo/key"), '{"n":1}');
    await stand.remove("demo/key.json");
    await assert.rejects(stand.makeFile("demo/key.json", "no json"), fails("EINVAL"));
    assert.equal(await stand.text("demo/.key.json.rejected"), "no json");
    await stand.makeFile("demo/key.json", '{"n":2}');
    assert.equal(stand.stored("demo/key"), '{"n":2}');
    await stand.remove("demo/key.json");
    await stand.pass(30_000);
    await stand.makeFile("demo/key.json", '{"n":3}');
    assert.equal(stand.stored("demo/key"), undefined);
  });
});

describe("names on the mount that are renamed", () => {
  it("show a secret again 30 s after a rename to a backup", async () => {
    const stand = new WritingStand(KEY);
    await stand.rename("demo/key.json", "demo/key.json~");
    assert.equal(await stand.text("demo/key.json"), undefined);
    assert.deepEqual(await stand.names("demo"), ["key.d", "key.json~"]);
    await assert.rejects(stand.removeDirectory("demo"), fails("ENOTEMPTY"));
    await stand.pass(29_999);
    assert.equal(await stand.text("demo/key.json"), undefined);
    stand.expired.length = 0;
    await stand.pass(1);
    assert.deepEqual(stand.expired, ["key.json"]);
    assert.equal(await stand.text("demo/key.json"), '{\n  "a": "1",\n  "b": 2\n}\n');
    await stand.remove("demo/key.json~");
    assert.equal(stand.stored("demo/key"), KEY["demo/key"]);
  });

  it("replace a secret that was renamed to a backup by its version then", async () => {
    const stand = new WritingStand(KEY);
    await stand.rename("demo/key.json", "demo/key.json~");
    await stand.makeFile("demo/key.json", '{"new":1}');
    assert.equal(stand.stored("demo/key"), '{"new":1}');
    await stand.rename("demo/key.json", "demo/key.json~");
    stand.store.secrets.set("demo/key", { version: 9, fields: '{"theirs":1}' });
    const handle = await stand.create("demo/key.json", '{"mine":1}');
    await assert.rejects(stand.close(handle), fails("ESTALE"));
    assert.equal(stand.stored("demo/key"), '{"theirs":1}');
  });

  it("write the target before they remove the source, and a failure leaves both", async () => {
    const stand = new WritingStand(KEY);
    stand.store.before = ({ kind }) => {
      if (kind === "delete") throw new StoreFault("unavailable");
    };
    await assert.rejects(stand.rename("demo/key.json", "demo/other.json"), fails("EIO"));
    assert.deepEqual(
      [stand.stored("demo/key"), stand.stored("demo/other")],
      [KEY["demo/key"], KEY["demo/key"]],
    );
    stand.store.before = () => undefined;
    await stand.rename("demo/other.json", "demo/key.json");
    assert.deepEqual([...stand.store.secrets.keys()], ["demo/key"]);
  });

  it("leave a secret alone that is renamed to itself", async () => {
    const stand = new WritingStand(KEY);
    await stand.rename("demo/key.json", "demo/key.json");
    assert.deepEqual(stand.store.secrets.get("demo/key"), { version: 1, fields: KEY["demo/key"] });
  });

  it("do not replace a version that nobody has seen, though the kernel tries twice", async () => {
    const stand = new WritingStand(KEY);
    await stand.text("demo/key.json");
    stand.store.secrets.set("demo/key", { version: 2, fields: '{"a":"theirs"}' });
    await stand.makeFile("demo/x.tmp", '{"a": "ours"}');
    for (let tries = 0; tries < 2; tries++) {
      await assert.rejects(stand.rename("demo/x.tmp", "demo/key.json"), fails("ESTALE"));
      assert.equal(stand.stored("demo/key"), '{"a":"theirs"}');
    }
    assert.equal(await stand.text("demo/.key.json.conflict"), '{"a": "ours"}');
    // The next one is a decision of the user.
    await stand.rename("demo/x.tmp", "demo/key.json");
    assert.match(stand.stored("demo/key") ?? "", /ours/);
  });

  it("do not replace a version that came after a program has read the secret", async () => {
    const stand = new WritingStand(KEY);
    stand.readVersions.opened("demo/key", 1);
    stand.store.secrets.set("demo/key", { version: 2, fields: '{"a":"theirs"}' });
    await stand.makeFile("demo/x.tmp", '{"a": "ours"}');
    // The name was looked up again, but nobody has read what is there.
    stand.nowMs += 600_000;
    await assert.rejects(stand.rename("demo/x.tmp", "demo/key.json"), fails("ESTALE"));
    assert.equal(stand.stored("demo/key"), '{"a":"theirs"}');
  });

  it("refuse a text that is not a document, and keep its file", async () => {
    const stand = new WritingStand(KEY);
    await stand.makeFile("demo/x.tmp", "no json");
    await assert.rejects(stand.rename("demo/x.tmp", "demo/key.json"), fails("EINVAL"));
    assert.equal(await stand.text("demo/x.tmp"), "no json");
    assert.equal(stand.stored("demo/key"), KEY["demo/key"]);
    await assert.rejects(stand.rename("demo/x.tmp", "demo/key.json", 2), fails("EINVAL"));
    await assert.rejects(stand.rename("demo/x.tmp", "demo/key.json", 1), fails("EEXIST"));
  });
});

describe("the end of the mount", () => {
  it("stores new files that are whole, and later ones when they are closed", async () => {
    const stand = new WritingStand(KEY);
    await stand.makeFile("demo/good.json", '{"n":1}');
    await stand.makeFile("demo/bad.json", "no json");
    await stand.writing.settle();
    assert.equal(stand.stored("demo/good"), '{"n":1}');
    assert.deepEqual(stand.writing.report(), [
      { path: "demo/.bad.json.rejected", reason: "it is not one JSON object" },
    ]);
    await stand.makeFile("demo/late.json", '{"n":2}');
    await stand.pass(0);
    assert.equal(stand.stored("demo/late"), '{"n":2}');
  });
});

describe("a directory that is renamed", () => {
  const TREE = { "demo/a": '{"n":1}', "demo/deep/b": '{"n":2}', "other/c": '{"n":3}' };

  it("takes all its secrets and files in memory with it", async () => {
    const stand = new WritingStand(TREE);
    await stand.makeFile("demo/new.json", '{"n":4}');
    await stand.makeFile("demo/deep/plain", "text");
    await stand.makeDirectory("demo/empty");
    await stand.rename("demo", "moved");
    assert.deepEqual([...stand.store.secrets.keys()].toSorted(), ["moved/a", "moved/deep/b", "other/c"]);
    assert.deepEqual(await stand.names(), ["moved", "other"]);
    assert.deepEqual(await stand.names("moved"), ["a.d", "a.json", "deep", "empty", "new.json"]);
    assert.equal(await stand.text("moved/deep/b.json"), '{\n  "n": 2\n}\n');
    assert.equal(await stand.text("moved/deep/plain"), "text");
    await stand.pass(2000);
    assert.equal(stand.stored("moved/new"), '{"n":4}');
  });

  it("stays as it is when a secret cannot be written", async () => {
    const stand = new WritingStand(TREE);
    stand.store.before = (request) => {
      if (request.kind === "write" && request.path === "moved/deep/b") throw new StoreFault("denied");
    };
    await assert.rejects(stand.rename("demo", "moved"), fails("EACCES"));
    assert.deepEqual([...stand.store.secrets.keys()], Object.keys(TREE));
  });

  it("never replaces one that is not empty, and never moves into itself", async () => {
    const stand = new WritingStand(TREE);
    await assert.rejects(stand.rename("demo", "other"), fails("ENOTEMPTY"));
    await assert.rejects(stand.rename("demo", "demo/deep/inner"), fails("EINVAL"));
    await assert.rejects(stand.rename("demo/a.d", "demo/c.d"), fails("EPERM"));
    await stand.makeDirectory("empty");
    await stand.rename("demo", "empty");
    assert.equal(stand.stored("empty/a"), '{"n":1}');
    assert.equal(stand.stored("demo/a"), undefined);
  });

  it("is only in memory until something in it is stored", async () => {
    const stand = new WritingStand(TREE);
    await stand.makeDirectory("new");
    await stand.rename("new", "newer");
    assert.deepEqual(await stand.names(), ["demo", "newer", "other"]);
    await stand.removeDirectory("newer");
    assert.ok(stand.overlay.isEmpty);
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { KernelCache } from "./kernel-cache.ts";
import type { DirectoryNode, DirectoryPlace, FileNode } from "./nodes.ts";

function directory(
  id: bigint,
  parent: DirectoryNode | undefined,
  name: string,
  place: DirectoryPlace,
): DirectoryNode {
  const node: DirectoryNode = {
    kind: "directory",
    id,
    parent,
    name,
    place,
    children: new Map(),
    lookups: 1n,
    opens: 0,
  };
  parent?.children.set(name, node);
  return node;
}

function file(id: bigint, parent: DirectoryNode, name: string, source: FileNode["source"]): void {
  const facts = { key: "1", size: 1, modifiedMs: 0, version: 1, lookups: 1n, opens: 0 };
  const writing = { draft: undefined, isReplaced: false, isShared: false, reservedFor: undefined };
  parent.children.set(name, { kind: "file", id, inode: id, parent, name, source, ...facts, ...writing });
}

/** The kernel knows `demo/key.json`, `demo/key.d/a` and the rendered `app/.env`. */
function stand(canExpire: boolean): { cache: KernelCache; expired: () => string[] } {
  const root = directory(1n, undefined, "", { kind: "folder", folder: "" });
  const demo = directory(2n, root, "demo", { kind: "folder", folder: "demo/" });
  file(3n, demo, "key.json", { kind: "secret", path: "demo/key" });
  const fields = directory(4n, demo, "key.d", { kind: "fields", path: "demo/key" });
  file(5n, fields, "a", { kind: "field", path: "demo/key", field: "a" });
  const app = directory(6n, root, "app", { kind: "folder", folder: "app/" });
  file(7n, app, ".env", { kind: "rendered", path: "app/.env" });
  const seen: Buffer[] = [];
  const cache = new KernelCache(
    root,
    async (notification) => void seen.push(notification),
    () => canExpire,
  );
  // struct fuse_notify_inval_entry_out after a header of 16 bytes: parent, length of the name, flags, name.
  const shown = (bytes: Buffer): string =>
    `${bytes.readBigUInt64LE(16)} ${bytes.toString("utf8", 32, 32 + bytes.readUInt32LE(24))}`;
  return { cache, expired: () => seen.splice(0).map(shown).toSorted() };
}

describe("names that the kernel looks up again", () => {
  it("are those of the changed secret, of its fields, and of the folders above", () => {
    const { cache, expired } = stand(true);
    void cache.changed("demo/key");
    assert.deepEqual(expired(), ["1 demo", "2 key.json", "4 a"]);
  });

  it("are not those of folders, where the kernel would drop what is mounted below", () => {
    const { cache, expired } = stand(false);
    void cache.changed("demo/key");
    assert.deepEqual(expired(), ["2 key.json", "4 a"]);
  });

  it("are a folder that was missing, and a secret that was missing", () => {
    const { cache, expired } = stand(false);
    void cache.changed("new/deep/key");
    assert.deepEqual(expired(), ["1 new"]);
    void cache.changed("demo/late");
    assert.deepEqual(expired(), ["2 late.d", "2 late.json"]);
  });

  it("are all after a change of anything, and the rendered ones after one of a rule", () => {
    const { cache, expired } = stand(true);
    void cache.changed("");
    assert.deepEqual(expired(), ["1 app", "1 demo", "2 key.d", "2 key.json", "4 a", "6 .env"]);
    cache.renderedChanged();
    assert.deepEqual(expired(), ["6 .env"]);
  });
});

import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { ObjectStoreError } from "@devplat/object-store";
import { repositoryId } from "../../access/repository-id.ts";
import { ManifestKeys } from "./manifest/manifest-keys.ts";
import { ObjectNames, newPackName, newResponseName } from "./object-names.ts";

const HOST = "https://code.example";
const plain = new ObjectNames({ prefix: "team/cache", hostUrl: HOST, hideKey: undefined });
const hidden = (key: string): ObjectNames =>
  new ObjectNames({ prefix: "", hostUrl: HOST, hideKey: new ManifestKeys(new Secret(key)).names });

describe("ObjectNames", () => {
  it("puts everything below prefix, version, code host, owner and name", () => {
    const id = repositoryId("Ada", "Engine.Docs");
    const folder = `team/cache/v1/${hash("sha256", HOST)}/ada/engine.docs/`;
    assert.equal(plain.folder(id), folder);
    assert.equal(plain.manifest(id), `${folder}manifest.json`);
    assert.equal(plain.object(id, "packs/a.pack"), `${folder}packs/a.pack`);
    assert.equal(plain.slices(id, "packs/a.pack"), `${folder}packs/a.pack.slices`);
    assert.ok(folder.startsWith(plain.host) && plain.host.startsWith(plain.root));
  });

  it("does not tell upper and lower case apart", () => {
    assert.equal(plain.manifest(repositoryId("ADA", "x")), plain.manifest(repositoryId("ada", "X")));
  });

  it("trims slashes of the prefix, and takes none", () => {
    const at = (prefix: string): string =>
      new ObjectNames({ prefix, hostUrl: HOST, hideKey: undefined }).root;
    assert.equal(at("/var/cache/"), "var/cache/v1/");
    assert.equal(at(""), "v1/");
    for (const prefix of ["a//b", "a/../b", "a\nb", "x".repeat(300)])
      assert.throws(() => at(prefix), ObjectStoreError, prefix);
  });

  it("hides owner and name with a key, and tells owners with the same name apart", () => {
    const id = repositoryId("ada", "engine");
    const names = hidden("1".repeat(64));
    assert.match(names.folder(id), /^v1\/[\da-f]{64}\/[\da-f]{32}\/[\da-f]{32}\/$/);
    assert.doesNotMatch(names.manifest(id), /ada|engine/);
    assert.equal(names.folder(repositoryId("Ada", "Engine")), names.folder(id));
    assert.notEqual(hidden("2".repeat(64)).folder(id), names.folder(id));
    const last = (owner: string): string => names.folder(repositoryId(owner, "engine")).split("/")[3] ?? "";
    assert.notEqual(last("bob"), last("ada"));
  });

  it("throws for a name that a store would change", () => {
    for (const name of ["..", ".", "a\u0000b", ""])
      assert.throws(() => plain.manifest(repositoryId("ada", name)), ObjectStoreError);
    assert.throws(() => plain.object(repositoryId("ada", "x"), "packs/../../y"), ObjectStoreError);
  });

  it("gives each upload a name of its own that a manifest takes", () => {
    const form = /^(?:packs|responses)\/[\dA-Za-z][\w.-]{0,199}$/;
    const names = [
      newResponseName("a".repeat(64), "w1"),
      newResponseName("a".repeat(64), "w1"),
      `${newPackName(`pack-${"b".repeat(64)}`, "w1")}.pack`,
    ];
    assert.equal(new Set(names).size, 3);
    for (const name of names) assert.match(name, form);
  });
});

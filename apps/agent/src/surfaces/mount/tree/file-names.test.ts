import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { testSeed } from "@devplat/testkit";
import fc from "fast-check";
import { folderEntries, isFileName, isTemporary, newSecretPath } from "./file-names.ts";

describe("file names of a folder of the store", () => {
  it("are the folders' own, and those of secrets with .json", () => {
    const { entries, omitted } = folderEntries("a/", ["b", "b/", "c.d"], "json");
    assert.deepEqual(
      [...entries],
      [
        ["b", { kind: "folder", folder: "a/b/" }],
        ["b.json", { kind: "secret", path: "a/b" }],
        ["c.d.json", { kind: "secret", path: "a/c.d" }],
      ],
    );
    assert.equal(omitted, 0);
  });

  it("have a directory for the fields with the layout both", () => {
    const { entries } = folderEntries("", ["x"], "both");
    assert.deepEqual([...entries.keys()], ["x.json", "x.d"]);
  });

  const left: readonly (readonly [string, readonly string[]])[] = [
    ["a secret whose file has the name of a folder", ["a", "a.json/"]],
    ["a secret whose file name has more than 255 bytes", ["a".repeat(251)]],
    ["a folder with such a name", [`${"ä".repeat(128)}/`]],
    ["a folder .., which a store should not have", ["../"]],
  ];
  for (const [name, names] of left)
    it(`leave out ${name}`, () => {
      const { entries, omitted } = folderEntries("", names, "json");
      assert.equal(omitted, 1);
      assert.equal(entries.size, names.length - 1);
    });

  it("are different for different names, and possible", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.string({ minLength: 1, maxLength: 300, unit: "grapheme" })),
        fc.constantFrom("json" as const, "both" as const),
        (names, layout) => {
          const { entries, omitted } = folderEntries("f/", names, layout);
          for (const name of entries.keys()) assert.ok(isFileName(name), name);
          const isFolder = (name: string): boolean => name.endsWith("/");
          const expected =
            names.filter(isFolder).length +
            names.filter((name) => !isFolder(name)).length * (layout === "both" ? 2 : 1);
          assert.equal(entries.size + omitted, expected);
        },
      ),
      { seed: testSeed() },
    );
  });

  it("tell which new file is a secret", () => {
    assert.equal(newSecretPath("demo/", "key.json"), "demo/key");
    for (const name of [
      "key",
      ".key.json",
      "key.json~",
      "4913",
      "key.tmp.json",
      "#key.json",
      "a\\b.json",
      ".json",
    ])
      assert.equal(newSecretPath("demo/", name), undefined, name);
  });

  it("know the temporary ones of editors", () => {
    for (const name of [".a.json.swp", "a.json~", "4913", "a.json.tmp.123", "a___jb_tmp___", "#a#"])
      assert.ok(isTemporary(name), name);
    for (const name of ["a.json", "a~b", "14913", "tmp"]) assert.ok(!isTemporary(name), name);
  });
});

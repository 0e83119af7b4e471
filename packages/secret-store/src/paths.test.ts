import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { testSeed } from "@devplat/testkit";
import fc from "fast-check";
import { SecretStoreError } from "./errors.ts";
import { checkFolder, checkPath, MAX_PATH_BYTES, userRoot } from "./paths.ts";

const badPath = (error: unknown): boolean => error instanceof SecretStoreError && error.code === "bad_path";

const GOOD = [
  "a",
  "a/b",
  "github/token",
  "a.b",
  "..a",
  "a..",
  "...",
  "a b",
  " ",
  "ünï/\u{1f511}",
  "%2e",
  "%",
  "a:b@c",
  "~",
];
const BAD = [
  ["", "empty"],
  ["/", "slashes only"],
  ["/a", "leading slash"],
  ["a//b", "empty segment"],
  [".", "dot"],
  ["..", "dot dot"],
  ["a/./b", "dot segment"],
  ["a/../b", "dot dot segment"],
  ["../a", "leading dot dot"],
  ["a\0b", "NUL"],
  ["a\nb", "line feed"],
  ["a\tb", "tab"],
  ["a\x7fb", "delete"],
  ["a\\b", "backslash"],
  ["a%2fb", "encoded slash"],
  ["a%2Fb", "encoded slash, upper case"],
  ["a%5cb", "encoded backslash"],
  ["a\u200bb", "zero-width space"],
  ["a\u00a0b", "no-break space"],
  ["a\u202eb", "right-to-left override"],
  ["a\ud800b", "unpaired surrogate"],
  ["ü".repeat(MAX_PATH_BYTES / 2) + "x", "a byte over the limit"],
] as const;

describe("checkPath", () => {
  for (const path of GOOD)
    it(`takes ${JSON.stringify(path)} [agent 2.1]`, () => assert.doesNotThrow(() => checkPath(path)));
  for (const [path, why] of BAD) {
    it(`refuses ${JSON.stringify(path.slice(0, 20))}: ${why} [agent 2.3]`, () =>
      assert.throws(() => checkPath(path), badPath));
  }
  it("refuses a folder", () => assert.throws(() => checkPath("a/"), badPath));
  it("accepts a path of exactly the maximum length", () =>
    assert.doesNotThrow(() => checkPath("x".repeat(MAX_PATH_BYTES))));

  it("an accepted path is normal in a URL once encoded, without .. segments", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (path) => {
        try {
          checkPath(path);
        } catch (error) {
          assert.ok(badPath(error));
          return;
        }
        const encoded = path.split("/").map(encodeURIComponent).join("/");
        assert.equal(
          new URL(`http://h/v1/kv/${encoded}`).pathname,
          new URL(`http://h/v1/kv/`).pathname + encoded,
        );
        assert.equal(decodeURIComponent(encoded), path);
      }),
      { seed: testSeed(), numRuns: 2_000 },
    );
  });

  it("accepts joined valid segments, and refuses one invalid segment [agent 2.3]", () => {
    const segment = fc.constantFrom(...GOOD.filter((path) => !path.includes("/")));
    const bad = fc.constantFrom("", ".", "..", "a\0", "a\\b", "%2F", "\u{e000}");
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1 }), fc.nat(), bad, (segments, place, spoiled) => {
        checkPath(segments.join("/"));
        checkFolder(`${segments.join("/")}/`);
        const at = place % segments.length;
        const joined = segments.with(at, spoiled).join("/");
        assert.throws(() => checkPath(joined), badPath);
        assert.throws(() => checkFolder(`${joined}/`), badPath);
      }),
      { seed: testSeed() },
    );
  });
});

describe("checkFolder", () => {
  for (const folder of ["", "a/", "a/b/", "..a/"]) {
    it(`takes ${JSON.stringify(folder)}`, () => assert.doesNotThrow(() => checkFolder(folder)));
  }
  for (const folder of ["/", "a", "a//", "/a/", "../", "a/../", "a\0/", "a%2f/"]) {
    it(`refuses ${JSON.stringify(folder)}`, () => assert.throws(() => checkFolder(folder), badPath));
  }
});

describe("userRoot", () => {
  it("joins prefix and user name to a folder [agent 2.1]", () => {
    assert.deepEqual(userRoot({ mount: "team/kv", prefix: "a/users/", username: "ada.l" }), {
      mount: "team/kv",
      folder: "a/users/ada.l/",
    });
    assert.equal(userRoot({ mount: "kv", prefix: "", username: "ada" }).folder, "ada/");
  });

  for (const username of ["", ".", "..", "a/b", "a\\b", "a\0", "/", "a\n"]) {
    it(`refuses the user name ${JSON.stringify(username)} [agent 2.2]`, () => {
      assert.throws(() => userRoot({ mount: "kv", prefix: "users/", username }), badPath);
    });
  }
  for (const mount of ["", "/kv", "kv/", "..", "a//b"]) {
    it(`refuses the mount ${JSON.stringify(mount)}`, () => {
      assert.throws(() => userRoot({ mount, prefix: "", username: "ada" }), badPath);
    });
  }
  for (const prefix of ["users", "/", "/users/", "../", "a//"]) {
    it(`refuses the prefix ${JSON.stringify(prefix)}`, () => {
      assert.throws(() => userRoot({ mount: "kv", prefix, username: "ada" }), badPath);
    });
  }
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { targetFault } from "./request-target.ts";

describe("targetFault", () => {
  for (const target of [
    "/",
    "/ui/",
    "/api/v1/secrets/a%20b/c",
    "/x?next=..%2F..//a\\",
    "/.hidden",
    "/a...b/...",
  ]) {
    it(`takes ${target}`, () => assert.equal(targetFault(target), undefined));
  }
  const refused = [
    "",
    "*",
    "http://127.0.0.1/",
    "a",
    "//",
    "/a//b",
    "/a/../b",
    "/..",
    "/a/.",
    "/%2e%2E/a",
    "/a/.%2e/b",
  ];
  for (const target of [
    ...refused,
    "/a%2Fb",
    "/a%5cb",
    "/a\\b",
    "/%00",
    "/%zz",
    "/%",
    "/ä",
    "/a b",
    "/a\u0000",
  ]) {
    it(`refuses ${JSON.stringify(target)}`, () => assert.notEqual(targetFault(target), undefined));
  }

  it("accepts no path that a URL parser reads as another path", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("/", ".", "%2e", "%2F", "a", "\\", "?", "%", "#") }),
        (rest) => {
          const target = `/${rest}`;
          if (targetFault(target) !== undefined || target.includes("#")) return;
          assert.equal(new URL(`http://h${target}`).pathname, target.split("?", 1)[0]);
        },
      ),
    );
  });
});

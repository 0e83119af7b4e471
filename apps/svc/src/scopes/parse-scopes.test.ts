import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RESOURCES, allows, parseScopes } from "./scopes.ts";

describe("scopes", () => {
  it("metadata:read is always included and the order is fixed [svc 9.3]", () => {
    const { scopes, faults } = parseScopes(" issues:read, contents:write");
    assert.deepEqual(faults, []);
    assert.deepEqual(Object.entries(scopes), [
      ["contents", "write"],
      ["issues", "read"],
      ["metadata", "read"],
    ]);
  });

  it("pulls is an alias, and the higher of two levels is used", () => {
    assert.deepEqual(parseScopes("pulls:write,pull_requests:read").scopes, {
      pull_requests: "write",
      metadata: "read",
    });
  });

  it("faults name what is meant", () => {
    const faults = (text: string): readonly string[] => parseScopes(text).faults;
    assert.deepEqual(faults("content:read"), ['unknown resource "content"; did you mean contents?']);
    assert.deepEqual(faults("contents:admin"), ["the level of contents must be read or write"]);
    for (const text of ["", "contents", "contents:read,", "contents:read:x"]) {
      assert.deepEqual(faults(text), ["expected <resource>:<level> entries, separated by commas"], text);
    }
    assert.deepEqual(faults("__proto__:read"), ['unknown resource "__proto__"']);
    assert.deepEqual(faults("constructor:read"), ['unknown resource "constructor"']);
  });

  it("write implies read, read does not imply write [svc 9.3]", () => {
    for (const resource of RESOURCES) {
      const { scopes } = parseScopes(`${resource}:write`);
      assert.equal(allows(scopes, resource, "read") && allows(scopes, resource, "write"), true);
    }
    assert.equal(allows(parseScopes("contents:read").scopes, "contents", "write"), false);
    assert.equal(allows(parseScopes("issues:write").scopes, "contents", "read"), false);
    assert.equal(allows(parseScopes("*").scopes, "contents", "write"), true);
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { mountedPath } from "./mounted-path.ts";

const json = { mountpoint: "/home/ada/.daemon", layout: "json" } as const;
const both = { ...json, layout: "both" } as const;

describe("mountedPath", () => {
  it("is the file of a secret, and with layout both of a field", () => {
    assert.equal(mountedPath(json, "registry"), "/home/ada/.daemon/registry.json");
    assert.equal(mountedPath(both, "demo/registry"), "/home/ada/.daemon/demo/registry.json");
    assert.equal(mountedPath(both, "demo/registry", "a b"), "/home/ada/.daemon/demo/registry.d/a b");
    assert.equal(mountedPath(json, "demo/registry", "user"), undefined);
  });

  it("is undefined for names that no file can have", () => {
    for (const field of ["", ".", "..", "a/b", "../x", "nul\0", "é".repeat(128)])
      assert.equal(mountedPath(both, "demo/registry", field), undefined, field);
    assert.equal(mountedPath(both, "n".repeat(251)), undefined);
    assert.notEqual(mountedPath(both, "n".repeat(250)), undefined);
  });
});

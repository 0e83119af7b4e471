import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { suggest } from "./suggest.ts";

describe("a suggestion", () => {
  it("is the nearest known word, or none [agent 3.11]", () => {
    assert.equal(suggest("listne", ["listen", "base_url"]), "listen");
    assert.equal(suggest("snyc", ["start", "sync"]), "sync");
    assert.equal(suggest("BASE-URL", ["listen", "Base_URL"]), "Base_URL");
    assert.equal(suggest("umount", ["mount", "unmount"]), "unmount");
    assert.equal(suggest("Mount", ["mount", "mouant"]), "mount");
    assert.equal(suggest("zzz", ["listen"]), undefined);
    assert.equal(suggest("abc", ["xyc"]), undefined);
  });
});

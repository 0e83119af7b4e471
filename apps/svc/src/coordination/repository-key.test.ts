import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { repositoryId } from "../access/repository-id.ts";
import { repositoryKey, repositoryOfKey } from "./repository-key.ts";

describe("repositoryKey", () => {
  it("names code host, owner and name without regard to case", () => {
    const key = repositoryKey("https://GitHub.com/", repositoryId("Acme", "Widgets"));
    assert.equal(key, "github.com/acme/widgets");
    assert.equal(
      repositoryKey("http://git.example:8443/git/", repositoryId("a", "b")),
      "git.example:8443/git/a/b",
    );
  });

  it("gives the repository back, and only for its own code host", () => {
    for (const host of ["https://github.com", "http://git.example:8443/git", "http://git.example:8443"]) {
      const key = repositoryKey(host, repositoryId("acme", "widgets"));
      assert.deepEqual(repositoryOfKey(host, key), { owner: "acme", name: "widgets" });
      for (const other of ["https://gitlab.example", "http://git.example:8443/other"]) {
        assert.equal(repositoryOfKey(other, key), undefined);
      }
    }
    assert.equal(repositoryOfKey("https://github.com", ""), undefined);
  });
});

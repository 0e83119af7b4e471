import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decodeFetchRequest, finish } from "@devplat/git-protocol";
import { isStorableRequest, responseKeySteps } from "./response-key.ts";

const oid = (digit: string): string => digit.repeat(40);

describe("responseKey", () => {
  const keyOf = (args: string[], capabilities: string[] = [], tags?: string): string => {
    const fetch = decodeFetchRequest({ command: "fetch", capabilities, args }, "sha1");
    return finish(responseKeySteps({ format: "sha1", capabilities, fetch, resolved: [], tags }));
  };
  const base = [`want ${oid("a")}`, `want ${oid("b")}`, "done"];

  it("is the same for any order, duplicates, agent and session-id [svc 2.1]", () => {
    assert.equal(
      keyOf(
        ["done", `want ${oid("b")}`, `want ${oid("a")}`, `want ${oid("b")}`],
        ["agent=x", "session-id=1"],
      ),
      keyOf(base, ["agent=y"]),
    );
  });

  it("differs by everything that may change the response [svc 2.1]", () => {
    const keys = [
      keyOf(base),
      keyOf(base.slice(1)),
      keyOf([...base, "no-progress"]),
      keyOf([...base, "thin-pack"]),
      keyOf([...base, "ofs-delta"]),
      keyOf([...base, "include-tag"]),
      keyOf([...base, "include-tag"], [], "digest"),
      keyOf([...base, "deepen 1"]),
      keyOf([...base, "deepen 1", "deepen-relative"]),
      keyOf([...base, "deepen-since 1"]),
      keyOf([...base, "filter blob:none"]),
      keyOf([...base, `shallow ${oid("c")}`]),
      keyOf([...base, `have ${oid("c")}`]),
      keyOf([...base, "unheard-of"]),
      keyOf(base, ["server-option=x"]),
    ];
    assert.equal(new Set(keys).size, keys.length);
    for (const key of keys) assert.match(key, /^[0-9a-f]{64}$/);
  });

  it("requests that must not be stored are told apart", () => {
    const storable = (args: string[]): boolean =>
      isStorableRequest(decodeFetchRequest({ command: "fetch", capabilities: [], args }, "sha1"));
    assert.equal(storable(base), true);
    assert.equal(storable(["want-ref refs/heads/main"]), true);
    for (const arg of ["unheard-of", "sideband-all", "packfile-uris https", "want HEAD"]) {
      assert.equal(storable([...base, arg]), false, arg);
    }
    assert.equal(storable(["done"]), false);
  });
});

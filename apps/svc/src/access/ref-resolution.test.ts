import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EMPTY_FETCH, encodeLsRefsResponse } from "@devplat/git-protocol";
import { RefResolver } from "./ref-resolution.ts";

const response = (digit: string): Buffer =>
  encodeLsRefsResponse([
    {
      oid: digit.repeat(40),
      name: "refs/heads/main",
      symrefTarget: undefined,
      peeled: undefined,
      unknown: [],
    },
  ]);

describe("RefResolver", () => {
  const fetch = { ...EMPTY_FETCH, wantRefs: ["refs/heads/main", "refs/heads/gone"] };

  it("equal responses give one resolution, another response its own", () => {
    const resolver = new RefResolver();
    const first = resolver.resolve(fetch, response("a"));
    assert.equal(resolver.resolve(fetch, response("a")), first);
    const second = resolver.resolve(fetch, response("b"));
    assert.deepEqual([...second.wantedRefs], [["refs/heads/main", "b".repeat(40)]]);
    assert.deepEqual(second.lines, ["- refs/heads/gone", `${"b".repeat(40)} refs/heads/main`]);
    assert.notDeepEqual(resolver.resolve(fetch, response("a")), second);
  });

  it("fetches with other names have resolutions of their own for the same response", () => {
    const resolver = new RefResolver();
    const body = response("a");
    resolver.resolve(fetch, body);
    const other = resolver.resolve({ ...EMPTY_FETCH, wantRefs: ["refs/heads/gone"] }, body);
    assert.equal(other.wantedRefs.size, 0);
  });
});

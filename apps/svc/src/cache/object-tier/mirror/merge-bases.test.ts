import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { repositoryId } from "../../../access/repository-id.ts";
import { MergeBases } from "./merge-bases.ts";

const refs = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ name: `refs/heads/${at}`, oid: "0" }));

describe("MergeBases", () => {
  it("the bases that were used last stay within the limit; one over it is not kept", () => {
    const bases = new MergeBases(10);
    const [a, b, c] = ["a", "b", "c"].map((name) => repositoryId("org", name)) as [Id, Id, Id];
    bases.set(a, refs(4));
    bases.set(b, refs(4));
    assert.equal(bases.of(a)?.get("refs/heads/3")?.oid, "0");
    bases.set(c, refs(4));
    assert.deepEqual([bases.of(a)?.size, bases.of(b), bases.of(c)?.size], [4, undefined, 4]);
    bases.set(a, refs(20));
    assert.equal(bases.of(a), undefined, "not the older one either");
    bases.forget(c);
    assert.equal(bases.of(c), undefined);
  });
});

type Id = ReturnType<typeof repositoryId>;

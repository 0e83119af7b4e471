import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { encodeLsRefsResponse } from "@devplat/git-protocol";
import { ManualClock, START } from "./manual-clock.test-kit.ts";
import { RefSnapshots } from "./ref-snapshots.ts";

const oid = (digit: string): string => digit.repeat(40);
const refs = (...lines: [string, string, string?][]): Buffer =>
  encodeLsRefsResponse(
    lines.map(([id, name, peeled]) => ({
      oid: oid(id),
      name,
      symrefTarget: undefined,
      peeled: peeled && oid(peeled),
      unknown: [],
    })),
  );

describe("RefSnapshots", () => {
  const fresh = (): { tips: RefSnapshots; clock: ManualClock } => {
    const clock = new ManualClock();
    return { tips: new RefSnapshots(600_000, clock), clock };
  };

  it("knows the objects of a response, peeled ones too, for its time", () => {
    const { tips, clock } = fresh();
    tips.record([], refs(["a", "HEAD"], ["b", "refs/tags/v1", "c"]));
    assert.deepEqual(
      ["a", "b", "c", "d"].map((id) => tips.isTip(oid(id))),
      [true, true, true, false],
    );
    clock.ms += 600_001;
    assert.equal(tips.isTip(oid("a")), false);
    assert.equal(tips.record([], refs(["a", "HEAD"], ["b", "refs/tags/v1", "c"])), "verified");
    assert.equal(tips.isTip(oid("a")), true);
  });

  it("a response replaces the refs that its own prefixes cover, and no other", () => {
    const { tips } = fresh();
    tips.record([], refs(["a", "refs/heads/main"], ["b", "refs/heads/dev"], ["c", "refs/tags/v1"]));
    assert.equal(tips.record(["refs/heads/"], refs(["a", "refs/heads/main"])), "verified");
    assert.deepEqual(
      ["a", "b", "c"].map((id) => tips.isTip(oid(id))),
      [true, false, true],
    );
  });

  it("a response that shows known refs again changes none of them", () => {
    const { tips } = fresh();
    const all = refs(["a", "HEAD"], ["a", "refs/heads/main"], ["b", "refs/tags/v1", "c"]);
    tips.record([], all);
    const recent = tips.recent();
    tips.record(["HEAD"], refs(["a", "HEAD"]));
    tips.record([], all);
    assert.equal(tips.recent(), recent);
    tips.record(["refs/tags/"], refs(["b", "refs/tags/v1"]));
    assert.notEqual(tips.recent(), recent, "a tag lost what it points to");
  });

  it("a ref lives on from the last response that showed it, by whichever prefixes", () => {
    const { tips, clock } = fresh();
    const all = refs(["a", "HEAD"], ["b", "refs/heads/main"], ["c", "refs/pull/1/head"]);
    const shown = (): string => ["a", "b", "c"].filter((id) => tips.isTip(oid(id))).join("");
    const at = (seconds: number): number => (clock.ms = START + seconds * 1000);
    tips.record([], all);
    at(300);
    tips.record(["HEAD"], refs(["a", "HEAD"]));
    at(400);
    assert.equal(shown(), "abc");
    at(700);
    assert.equal(shown(), "a", "the others were not shown again");
    tips.record([], all);
    at(1000);
    assert.equal(shown(), "abc", "HEAD too, although a smaller response had shown it in between");
    at(1250);
    tips.record(["HEAD", "refs/other/"], refs(["a", "HEAD"]));
    at(1301);
    assert.equal(shown(), "a", "what it did not show is as old as before");
    tips.record([], all);
    at(1860);
    assert.equal(shown(), "abc", "HEAD too, although a response with other prefixes had shown it in between");
  });

  for (const prefixes of [[], ["refs/heads/"]]) {
    it(`refs that were too old count again when shown (${prefixes.join(" ") || "all"})`, () => {
      const { tips, clock } = fresh();
      tips.record([], refs(["a", "HEAD"], ["b", "refs/heads/main"]));
      clock.ms += 600_001;
      tips.record(["HEAD"], refs(["a", "HEAD"]));
      assert.deepEqual([...tips.recent().oids], [oid("a")]);
      const all = prefixes.length === 0 ? refs(["a", "HEAD"], ["b", "refs/heads/main"]) : undefined;
      tips.record(prefixes, all ?? refs(["b", "refs/heads/main"]));
      assert.deepEqual([...tips.recent().oids].toSorted(), [oid("a"), oid("b")]);
    });
  }

  it("a response without a known ref of its prefixes is a change", () => {
    const { tips } = fresh();
    tips.record([], refs(["a", "HEAD"], ["b", "refs/heads/main"], ["c", "refs/heads/dev"]));
    tips.record(["refs/heads/"], refs(["b", "refs/heads/main"]));
    assert.equal(tips.isTip(oid("c")), false);
    tips.record(["refs/heads/"], refs(["b", "refs/heads/main"], ["d", "refs/heads/new"]));
    assert.equal(tips.isTip(oid("d")), true);
  });

  it("a response that covers all names and shares no object replaces the repository", () => {
    const { tips } = fresh();
    tips.record([], refs(["a", "refs/heads/main"], ["b", "refs/tags/v1"], ["a", "HEAD"]));
    assert.equal(tips.record(["refs/"], refs(["c", "refs/heads/main"])), "replaced");
    assert.deepEqual(
      ["a", "b", "c"].map((id) => tips.isTip(oid(id))),
      [false, false, true],
    );
  });

  it("a response that shares nothing makes the names outside of it contested [svc 1.32]", () => {
    const { tips } = fresh();
    tips.record([], refs(["a", "refs/heads/main"], ["b", "refs/heads/dev"], ["a", "HEAD"]));
    assert.equal(tips.record(["HEAD"], refs(["c", "HEAD"])), "contested");
    assert.deepEqual(
      ["a", "b", "c"].map((id) => tips.isTip(oid(id))),
      [false, false, true],
    );
    assert.equal(tips.record(["HEAD"], refs(["c", "HEAD"])), "verified");
    assert.equal(tips.isTip(oid("b")), false);
    // A response that shares an object with a contested ref verifies all of them.
    assert.equal(tips.record(["refs/heads/dev"], refs(["b", "refs/heads/dev"])), "verified");
    assert.deepEqual(
      ["a", "b", "c"].map((id) => tips.isTip(oid(id))),
      [true, true, true],
    );
  });

  it("a response that covers all contested names and shares none replaces it", () => {
    const { tips } = fresh();
    tips.record([], refs(["a", "refs/heads/main"], ["b", "refs/tags/v1"], ["a", "HEAD"]));
    assert.equal(tips.record(["HEAD"], refs(["c", "HEAD"])), "contested");
    assert.equal(tips.record(["refs/heads/"], refs(["c", "refs/heads/main"])), "verified");
    assert.equal(tips.record(["refs/tags/"], refs(["c", "refs/tags/v1"])), "replaced");
    assert.equal(tips.isTip(oid("b")), false);
  });

  it("a contested ref becomes too old like any other", () => {
    const { tips, clock } = fresh();
    tips.record([], refs(["a", "refs/heads/main"], ["b", "refs/heads/dev"]));
    tips.record(["HEAD"], refs(["c", "HEAD"]));
    clock.ms += 600_001;
    tips.record(["refs/heads/dev"], refs(["b", "refs/heads/dev"]));
    assert.equal(tips.isTip(oid("a")), false);
    assert.equal(tips.isTip(oid("b")), true);
  });

  it("an empty response makes the known refs contested, and changes the identity", () => {
    const { tips } = fresh();
    assert.equal(tips.record(["refs/notes/"], refs()), "verified");
    const { identity } = tips;
    tips.record(["refs/heads/"], refs(["a", "refs/heads/main"]));
    assert.equal(tips.identity, identity);
    assert.equal(tips.record(["refs/notes/"], refs()), "contested");
    assert.equal(tips.isTip(oid("a")), false);
    assert.notEqual(tips.identity, identity);
  });

  it("the digest of the tags exists while a recent response covers all tags", () => {
    const { tips, clock } = fresh();
    tips.record(["refs/heads/"], refs(["a", "refs/heads/main"]));
    assert.equal(tips.tagsDigest(), undefined);
    tips.record(["refs/heads/", "refs/tags/"], refs(["a", "refs/heads/main"], ["b", "refs/tags/v1"]));
    const first = tips.tagsDigest();
    assert.equal(typeof first, "string");
    tips.record(["refs/heads/", "refs/tags/"], refs(["a", "refs/heads/main"], ["c", "refs/tags/v1"]));
    assert.notEqual(tips.tagsDigest(), first);
    clock.ms += 600_001;
    assert.equal(tips.tagsDigest(), undefined);
  });

  it("recent refs are the same object until one changes or becomes too old", () => {
    const { tips, clock } = fresh();
    tips.record(["HEAD"], refs(["a", "HEAD"]));
    clock.ms = START + 300_000;
    tips.record(["refs/heads/"], refs(["a", "refs/heads/main"], ["b", "refs/heads/dev"]));
    const first = tips.recent();
    assert.deepEqual([...first.oids], [oid("a"), oid("b")]);
    assert.equal(first.head, oid("a"));
    assert.deepEqual([...first.refs.keys()], ["refs/heads/main", "refs/heads/dev"]);
    assert.equal(tips.recent(), first);
    clock.ms = START + 600_001;
    assert.equal(tips.recent().head, undefined);
    assert.equal(tips.recent().refs.size, 2);
    clock.ms = START + 900_001;
    assert.equal(tips.recent().oids.size, 0);
  });
});

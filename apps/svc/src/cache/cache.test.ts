import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { decodeFetchRequest, encodeLsRefsResponse, finish } from "@devplat/git-protocol";
import { AuthorizationCache, authorizationKey } from "../access/authorization-cache.ts";
import { isStorable, repositoryId } from "../access/repository-id.ts";
import { isStorableRequest, responseKeySteps } from "./responses/response-key.ts";
import { UpstreamSlots } from "./coalescing/slots.ts";
import { RefSnapshots } from "../access/ref-snapshots.ts";

class ManualClock implements Clock {
  ms = 1_000_000;
  now(): number {
    return this.ms;
  }
  monotonic(): number {
    return this.ms;
  }
  sleep(): Promise<void> {
    return Promise.resolve();
  }
}

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

  it("knows the objects of a yes, peeled ones too, for tips_seconds", () => {
    const { tips, clock } = fresh();
    tips.record([], refs(["a", "HEAD"], ["b", "refs/tags/v1", "c"]));
    assert.deepEqual(
      ["a", "b", "c", "d"].map((id) => tips.isTip(oid(id))),
      [true, true, true, false],
    );
    clock.ms += 600_001;
    assert.equal(tips.isTip(oid("a")), false);
    assert.equal(tips.record([], refs(["a", "HEAD"], ["b", "refs/tags/v1", "c"])), "same");
    assert.equal(tips.isTip(oid("a")), true);
  });

  it("a yes replaces what its own prefixes cover, and nothing else", () => {
    const { tips } = fresh();
    tips.record([], refs(["a", "refs/heads/main"], ["b", "refs/heads/dev"], ["c", "refs/tags/v1"]));
    assert.equal(tips.record(["refs/heads/"], refs(["a", "refs/heads/main"])), "same");
    assert.deepEqual(
      ["a", "b", "c"].map((id) => tips.isTip(oid(id))),
      [true, false, true],
    );
  });

  it("a yes that speaks of every known name and agrees on none contradicts, and older tips are forgotten", () => {
    const { tips } = fresh();
    tips.record([], refs(["a", "refs/heads/main"], ["b", "refs/tags/v1"], ["a", "HEAD"]));
    assert.equal(tips.record(["refs/"], refs(["c", "refs/heads/main"])), "contradicted");
    assert.deepEqual(
      ["a", "b", "c"].map((id) => tips.isTip(oid(id))),
      [false, false, true],
    );
  });

  it("a yes that agrees on nothing puts the names outside of it in doubt, until one speaks of them [svc 1.32]", () => {
    const { tips } = fresh();
    tips.record([], refs(["a", "refs/heads/main"], ["b", "refs/heads/dev"], ["a", "HEAD"]));
    assert.equal(tips.record(["HEAD"], refs(["c", "HEAD"])), "unproven");
    assert.deepEqual(
      ["a", "b", "c"].map((id) => tips.isTip(oid(id))),
      [false, false, true],
    );
    assert.equal(tips.record(["HEAD"], refs(["c", "HEAD"])), "same");
    assert.equal(tips.isTip(oid("b")), false);
    // One that agrees with a tip in doubt speaks for all of them.
    assert.equal(tips.record(["refs/heads/dev"], refs(["b", "refs/heads/dev"])), "same");
    assert.deepEqual(
      ["a", "b", "c"].map((id) => tips.isTip(oid(id))),
      [true, true, true],
    );
  });

  it("a yes that speaks of all names in doubt and agrees on none contradicts", () => {
    const { tips } = fresh();
    tips.record([], refs(["a", "refs/heads/main"], ["b", "refs/tags/v1"], ["a", "HEAD"]));
    assert.equal(tips.record(["HEAD"], refs(["c", "HEAD"])), "unproven");
    assert.equal(tips.record(["refs/heads/"], refs(["c", "refs/heads/main"])), "same");
    assert.equal(tips.record(["refs/tags/"], refs(["c", "refs/tags/v1"])), "contradicted");
    assert.equal(tips.isTip(oid("b")), false);
  });

  it("a tip in doubt ends by age like any other", () => {
    const { tips, clock } = fresh();
    tips.record([], refs(["a", "refs/heads/main"], ["b", "refs/heads/dev"]));
    tips.record(["HEAD"], refs(["c", "HEAD"]));
    clock.ms += 600_001;
    tips.record(["refs/heads/dev"], refs(["b", "refs/heads/dev"]));
    assert.equal(tips.isTip(oid("a")), false);
    assert.equal(tips.isTip(oid("b")), true);
  });

  it("an empty answer shares nothing with the known tips: they are doubted, and it is another identity", () => {
    const { tips } = fresh();
    assert.equal(tips.record(["refs/notes/"], refs()), "same");
    const { identity } = tips;
    tips.record(["refs/heads/"], refs(["a", "refs/heads/main"]));
    assert.equal(tips.identity, identity);
    assert.equal(tips.record(["refs/notes/"], refs()), "unproven");
    assert.equal(tips.isTip(oid("a")), false);
    assert.notEqual(tips.identity, identity);
  });

  it("the digest of the tags exists only while a recent yes covers all of them, and follows them", () => {
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
});

describe("AuthorizationCache", () => {
  const key = authorizationKey("Basic x", "https://h", repositoryId("o", "r"));

  it("differ by credential, code host and repository, and not by case of the name [svc 1.8]", () => {
    const keys = [
      key,
      authorizationKey(undefined, "https://h", repositoryId("o", "r")),
      authorizationKey("Basic y", "https://h", repositoryId("o", "r")),
      authorizationKey("Basic x", "https://i", repositoryId("o", "r")),
      authorizationKey("Basic x", "https://h", repositoryId("o", "s")),
    ];
    assert.equal(new Set(keys).size, keys.length);
    assert.equal(authorizationKey("Basic x", "https://h", repositoryId("O", "R")), key);
    // U+212A, the Kelvin sign, is no k.
    assert.notEqual(
      authorizationKey("Basic x", "https://h", repositoryId("\u212a", "r")),
      authorizationKey("Basic x", "https://h", repositoryId("k", "r")),
    );
    assert.doesNotMatch(keys.join(), /Basic/);
  });

  it("counts for its seconds from when the request was sent [svc 1.9]", () => {
    const clock = new ManualClock();
    const authorizations = new AuthorizationCache(30, clock);
    const askedAt = authorizations.now();
    clock.ms += 10_000;
    authorizations.record(key, askedAt);
    clock.ms += 19_999;
    assert.notEqual(authorizations.find(key), undefined);
    clock.ms += 1;
    assert.equal(authorizations.find(key), undefined);
  });

  it("a refusal deletes an authorization, also one whose request was sent before it", () => {
    const clock = new ManualClock();
    const authorizations = new AuthorizationCache(30, clock);
    const askedAt = authorizations.now();
    authorizations.refuse(key);
    authorizations.record(key, askedAt);
    assert.equal(authorizations.find(key), undefined);
    clock.ms += 1;
    authorizations.record(key, authorizations.now());
    assert.notEqual(authorizations.find(key), undefined);
  });

  it("a probe renews an authorization within ten minutes, and none that was deleted", () => {
    const clock = new ManualClock();
    const authorizations = new AuthorizationCache(5, clock);
    authorizations.renew(key, authorizations.now());
    assert.equal(authorizations.find(key), undefined);
    authorizations.record(key, authorizations.now());
    clock.ms += 600_000;
    assert.equal(authorizations.find(key), undefined);
    authorizations.renew(key, authorizations.now());
    assert.equal(authorizations.find(key), clock.ms);
    clock.ms += 600_001;
    authorizations.renew(key, authorizations.now());
    assert.equal(authorizations.find(key), undefined);
    authorizations.record(key, authorizations.now());
    authorizations.forget(key);
    authorizations.renew(key, authorizations.now());
    assert.equal(authorizations.find(key), undefined);
  });

  it("0 seconds remember nothing", () => {
    const authorizations = new AuthorizationCache(0, new ManualClock());
    authorizations.record(key, authorizations.now());
    assert.equal(authorizations.find(key), undefined);
  });
});

describe("responseKey", () => {
  const keyOf = (args: string[], capabilities: string[] = [], tags?: string): string => {
    const fetch = decodeFetchRequest({ command: "fetch", capabilities, args }, "sha1");
    return finish(responseKeySteps({ format: "sha1", capabilities, fetch, resolved: [], tags }));
  };
  const base = [`want ${oid("a")}`, `want ${oid("b")}`, "done"];

  it("is the same whatever the order, duplicates, agent and session-id [svc 2.1]", () => {
    assert.equal(
      keyOf(
        ["done", `want ${oid("b")}`, `want ${oid("a")}`, `want ${oid("b")}`],
        ["agent=x", "session-id=1"],
      ),
      keyOf(base, ["agent=y"]),
    );
  });

  it("differs by everything that may change the answer [svc 2.1]", () => {
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

describe("repositoryId", () => {
  it("only names that are safe as folders may be stored [svc 2.6]", () => {
    for (const [owner, name] of [
      ["a", "b"],
      ["A-1", "b.c_d"],
      ["o", ".github"],
    ] as const) {
      assert.equal(isStorable(repositoryId(owner, name)), true, owner);
    }
    for (const [owner, name] of [
      ["_responses", "b"],
      [".removed~", "b"],
      ["..", "b"],
      ["a/b", "c"],
      ["a", "b/c"],
      ["a", "b c"],
      ["a".repeat(200), "b"],
    ] as const) {
      assert.equal(isStorable(repositoryId(owner, name)), false, owner);
    }
  });
});
describe("UpstreamSlots", () => {
  const WAIT_MS = 60_000;
  const never = new AbortController().signal;

  it("give two turns per repository, in order, and so many over all [svc 2.26]", async () => {
    const slots = new UpstreamSlots(3);
    const a1 = await slots.acquire("a", never, WAIT_MS);
    await slots.acquire("a", never, WAIT_MS);
    const order: string[] = [];
    const third = slots.acquire("a", never, WAIT_MS).then(() => order.push("a"));
    await slots.acquire("b", never, WAIT_MS);
    const other = slots.acquire("c", never, WAIT_MS).then(() => order.push("c"));
    await Promise.resolve();
    assert.deepEqual(order, []);
    a1?.();
    a1?.();
    await third;
    assert.deepEqual(order, ["a"]);
    assert.equal(await Promise.race([other.then(() => "c"), Promise.resolve("waiting")]), "waiting");
  });

  it("whoever gives up leaves the queue, and its turn is not lost", async () => {
    const slots = new UpstreamSlots(1);
    const running = await slots.acquire("a", never, WAIT_MS);
    const controller = new AbortController();
    const left = slots.acquire("b", controller.signal, WAIT_MS);
    const next = slots.acquire("c", never, WAIT_MS);
    assert.equal(await slots.acquire("d", never, 0), undefined, "no time is left");
    controller.abort();
    assert.equal(await left, undefined);
    running?.();
    assert.equal(typeof (await next), "function");
  });
});

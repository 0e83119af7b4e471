import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { MountReplies, MountRequest } from "../channel/messages.ts";
import { Timers } from "../timers.ts";
import { Contents } from "./contents.ts";
import { StoreFault } from "./file-error.ts";

/** A daemon with one secret `demo/key`, whose responses the test can hold back. */
class Stand {
  readonly asked: string[] = [];
  readonly omitted = new Map<string, number>();
  fields = '{"a":1.10}';
  version = 1;
  fault: StoreFault | undefined;
  hold: Promise<void> | undefined;
  nowMs = 0;
  readonly timers = new Timers(() => this.nowMs);
  readonly contents = new Contents(
    {
      request: async <K extends MountRequest["kind"]>(request: Extract<MountRequest, { kind: K }>) => {
        this.asked.push(request.kind);
        const { fault, version } = this;
        await this.hold;
        if (fault !== undefined) throw fault;
        const reply = request.kind === "list" ? ["key"] : { version, createdAt: 5, fields: this.fields };
        return reply as MountReplies[K];
      },
    },
    this.timers,
    { ttlMs: 1000, layout: "json" },
    (path, count) => this.omitted.set(path, count),
  );

  async read(): Promise<number> {
    return (await this.contents.secret("demo/key")).value.version;
  }

  pass(ms: number): void {
    this.nowMs += ms;
    this.timers.runDue();
  }
}

describe("contents of the store in the mount server", () => {
  it("are requested once for all callers, and kept for their time", async () => {
    const stand = new Stand();
    assert.deepEqual(await Promise.all([stand.read(), stand.read()]), [1, 1]);
    stand.pass(999);
    await stand.read();
    assert.deepEqual(stand.asked, ["read"]);
    const { value, untilMs } = await stand.contents.secret("demo/key");
    assert.equal(value.document.toString(), '{\n  "a": 1.10\n}\n');
    assert.equal(untilMs, 1000);
    stand.pass(1);
    await stand.read();
    assert.deepEqual(stand.asked, ["read", "read"]);
  });

  it("are requested again after a change of the secret, of its folder's listing too", async () => {
    const stand = new Stand();
    await stand.read();
    await stand.contents.listing("demo/");
    await stand.contents.listing("other/");
    stand.version = 2;
    stand.contents.drop("demo/key");
    assert.equal(await stand.read(), 2);
    await stand.contents.listing("demo/");
    await stand.contents.listing("other/");
    assert.deepEqual(stand.asked, ["read", "list", "list", "read", "list"]);
  });

  it("are not kept if a change came while they were requested", async () => {
    const stand = new Stand();
    const { promise, resolve } = Promise.withResolvers<void>();
    stand.hold = promise;
    const old = stand.contents.secret("demo/key");
    stand.version = 2;
    stand.contents.drop("demo/key");
    const fresh = stand.read();
    resolve();
    // The kernel may not keep it either.
    assert.deepEqual([(await old).value.version, (await old).untilMs], [1, 0]);
    assert.equal(await fresh, 2);
    assert.equal(await stand.read(), 2);
  });

  for (const code of ["not_found", "denied"] as const)
    it(`are not requested again for a time after the store said ${code}`, async () => {
      const stand = new Stand();
      stand.fault = new StoreFault(code);
      await assert.rejects(stand.read(), stand.fault);
      await assert.rejects(stand.read(), stand.fault);
      assert.equal(stand.asked.length, 1);
      stand.pass(1000);
      stand.fault = undefined;
      assert.equal(await stand.read(), 1);
    });

  it("tell how long a failed listing is used again", async () => {
    const stand = new Stand();
    stand.fault = new StoreFault("not_found");
    stand.nowMs = 10;
    await assert.rejects(stand.contents.listing("app/"), stand.fault);
    stand.pass(500);
    assert.equal(stand.contents.listingFailsUntil("app/"), 1010);
    assert.equal(stand.contents.listingFailsUntil("other/"), 510);
    stand.contents.drop("app/key");
    assert.equal(stand.contents.listingFailsUntil("app/"), 510);
  });

  it("are requested again after the store could not be asked", async () => {
    const stand = new Stand();
    stand.fault = new StoreFault("unavailable");
    await assert.rejects(stand.read(), stand.fault);
    stand.fault = undefined;
    assert.equal(await stand.read(), 1);
  });

  it("count the fields that no file can have, until the secret is gone", async () => {
    const stand = new Stand();
    stand.fields = JSON.stringify({
      "": "x",
      "..": "x",
      "a/b": "x",
      "n\0": "x",
      ["é".repeat(128)]: "x",
      a: "x",
    });
    await stand.read();
    assert.equal(stand.omitted.get("demo/key"), 0);
    stand.contents.configure({ ttlMs: 1000, layout: "both" });
    await stand.read();
    assert.equal(stand.omitted.get("demo/key"), 5);
    stand.pass(1000);
    stand.fault = new StoreFault("not_found");
    await assert.rejects(stand.read(), stand.fault);
    assert.equal(stand.omitted.get("demo/key"), 0);
  });

  it("leave memory at their end, also if nobody asks again", async () => {
    const stand = new Stand();
    await stand.read();
    assert.notEqual(stand.timers.untilNext(), undefined);
    stand.pass(1000);
    assert.equal(stand.timers.untilNext(), undefined);
  });
});

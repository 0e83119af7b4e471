import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger, systemClock, untilAborted, type Clock } from "@devplat/base";
import type { Ability, ProbeResult, StoreAbilities } from "@devplat/object-store";
import { until } from "@devplat/testkit";
import { S3_SERVERS, startTestBucket } from "../bucket.test-kit.ts";
import { ProbedStore, stateOf, type ProbedStoreParts } from "./probed-store.ts";

/** Kinds of requests that can have a condition. */
const WRITES = ["put", "complete", "delete"] as const;
/** Waits of at least this many milliseconds are those between two probes. */
const LONG_MS = 60_000;

/** A clock whose long waits end when the test says so. */
function heldClock(): { readonly clock: Clock; readonly waits: number; pass(): void } {
  let waits = 0;
  let pass = (): void => undefined;
  const sleep: Clock["sleep"] = async (ms, signal) => {
    if (ms < LONG_MS || ms === 120_000) return await systemClock.sleep(ms, signal);
    waits++;
    await untilAborted(new Promise<void>((resolve) => (pass = resolve)), signal);
  };
  return {
    clock: { now: () => systemClock.now(), monotonic: () => systemClock.monotonic(), sleep },
    get waits() {
      return waits;
    },
    pass: () => pass(),
  };
}

/** Why a store is not used. Empty: it is used. */
function reasonIn({ state }: ProbedStore): string {
  return state.kind === "unusable" ? state.reason : "";
}

for (const [name, start] of S3_SERVERS) {
  describe(`a bucket that changes while it is used: ${name}`, { timeout: 120_000 }, () => {
    const withStore = async (
      pointers: ProbedStoreParts["pointers"],
      test: (
        store: ProbedStore,
        bucket: Awaited<ReturnType<typeof startTestBucket>>,
        passed: () => Promise<void>,
      ) => Promise<void>,
    ): Promise<void> => {
      const bucket = await startTestBucket(start);
      const held = heldClock();
      const raw = bucket.client();
      const store = new ProbedStore({
        store: raw,
        guarded: raw,
        prefix: "p",
        pointers,
        clock: held.clock,
        logger: silentLogger,
        onState: () => undefined,
        settings: {},
      });
      const end = new AbortController();
      const running = store.run(end.signal);
      try {
        await until(() => held.waits === 1);
        await test(store, bucket, async () => {
          const { waits } = held;
          held.pass();
          await Promise.race([running, until(() => held.waits > waits)]);
        });
      } finally {
        end.abort();
        await running;
        await bucket.stop();
      }
    };

    it("without a database it is not used while conditions are ignored", async () => {
      await withStore(undefined, async (store, { proxy, server }, passed) => {
        await passed();
        assert.equal(reasonIn(store), "", "nothing has changed");
        proxy.inject(WRITES, { withoutConditions: server });
        await passed();
        assert.match(reasonIn(store), /does not honour conditions.*common Postgres/);
        await assert.rejects(store.put("k", Buffer.from("x")), { code: "circuit_open" });
        proxy.heal();
        await passed();
        assert.equal(reasonIn(store), "");
        await store.put("k", Buffer.from("x"), { condition: { ifAbsent: true } });
        await assert.rejects(store.put("k", Buffer.from("y"), { condition: { ifAbsent: true } }), {
          code: "condition_failed",
        });
      });
    });

    it("with a common database its rows name the manifests from then on", async () => {
      let isSet = false;
      const pointers = {
        isSet: async () => Promise.resolve(isSet),
        set: async () => Promise.resolve(void (isSet = true)),
      };
      await withStore(pointers, async (store, { proxy, server }, passed) => {
        assert.deepEqual([store.hasConditions, isSet], [true, false]);
        proxy.inject(WRITES, { withoutConditions: server });
        await passed();
        assert.deepEqual([store.state.kind, store.hasConditions, isSet], ["usable", false, true]);
      });
    });

    it("a store that fails is not taken for one that ignores conditions", async () => {
      await withStore(undefined, async (store, { proxy }, passed) => {
        for (const fault of [{ status: 500, code: "InternalError" }, { refuse: true }] as const) {
          proxy.inject("all", fault);
          await passed();
          assert.equal(store.state.kind, "usable");
          proxy.heal();
        }
        proxy.inject(WRITES, { status: 403, code: "AccessDenied" });
        await passed();
        assert.equal(store.state.kind, "usable", "its circuit breaker knows about faults");
      });
    });
  });
}

describe("stateOf", () => {
  const abilities = (
    conditions: boolean,
    result: ProbeResult,
    ability: Ability,
    missing: readonly string[] = [],
  ): StoreAbilities => ({
    rows: [
      { ability: "put", result: "yes", permission: undefined, reason: undefined },
      { ability, result, permission: missing[0], reason: result === "failed" ? "it is away" : undefined },
    ],
    usable: true,
    conditions,
    missingPermissions: missing,
  });
  const reasonOf = (given: StoreAbilities, hasDatabase = false): string => {
    const state = stateOf(given, hasDatabase, {});
    return state.kind === "unusable" ? state.reason : state.kind;
  };

  it("uses a store with conditions, also without conditions on deletes", () => {
    assert.equal(reasonOf(abilities(true, "no", "delete with If-Match")), "usable");
  });

  it("does not use one that ignores conditions, and names them and Postgres", () => {
    const reason = reasonOf(abilities(false, "no", "concurrent puts with If-Match"));
    assert.match(reason, /concurrent puts with If-Match.*common Postgres/);
  });

  it("uses one that ignores conditions with a common database", () => {
    assert.equal(reasonOf(abilities(false, "no", "put with If-Match"), true), "usable");
    assert.match(reasonOf(abilities(false, "no", "multipart upload"), true), /multipart upload$/);
    assert.equal(reasonOf(abilities(false, "failed", "put with If-Match"), true), "it is away");
  });

  it("names missing permissions and faults of the store before that", () => {
    const denied = abilities(false, "denied", "multipart upload", ["s3:AbortMultipartUpload"]);
    assert.match(reasonOf(denied), /permissions s3:AbortMultipartUpload$/);
    assert.equal(reasonOf(abilities(false, "failed", "multipart upload")), "it is away");
  });
});

import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { Secret, silentLogger, type Clock } from "@devplat/base";
import { SecretStoreError, type Fields, type TokenInfo } from "@devplat/secret-store";
import { embeddedSignIn, type SignIn } from "../auth/sign-in.ts";
import type { EnrolmentConfig } from "../config/sections/enrolment-section.ts";
import { workspace, type Workspace } from "../sync/workspace.test-kit.ts";
import type { EnrolmentEngine } from "./engine.ts";
import { failed } from "./http.ts";
import { mergeSecret } from "./merge-secret.ts";
import { EnrolmentRunner, type EnrolmentRunnerParts } from "./runner.ts";
import { EnrolmentState } from "./enrolment-state.ts";

let w: Workspace;
let now = 0;
let stored = 0;
let identity: SignIn = embeddedSignIn;
const clock: Clock = { now: () => now, monotonic: () => now, sleep: () => new Promise(() => undefined) };
const signal = new AbortController().signal;
beforeEach(async () => {
  w = await workspace();
  stored = 0;
  identity = embeddedSignIn;
  now = 1_700_000_000_000;
});
afterEach(() => w.remove());

const config = { engine: "prompt", description: "", fields: [] } as unknown as EnrolmentConfig;

function runner(
  engine: EnrolmentEngine,
  key = "tools/k",
  store: EnrolmentRunnerParts["store"] = w.store,
): EnrolmentRunner {
  return new EnrolmentRunner({
    enrolments: { [key]: config },
    makeEngine: () => engine,
    store,
    signIn: identity,
    state: new EnrolmentState(w.places.state),
    intervalMs: 60_000,
    onStored: () => (stored += 1),
    clock,
    logger: silentLogger,
  });
}

const asking: EnrolmentEngine = {
  interactive: true,
  run: async (steps) => {
    const fault = (value: string): string | undefined => (value === "" ? "needed" : undefined);
    const field = { name: "token", help: "", secret: true, optional: false, confirm: false, fault };
    const values = await steps.ask("", [field]);
    return new Map([["token", values.get("token")?.reveal() ?? ""]]);
  },
};
const state = (r: EnrolmentRunner): string => r.list()[0]?.state ?? "";
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the states of an enrolment", () => {
  it("pending → running → complete, and rules that use it are told [agent 2.6]", async () => {
    const r = runner(asking);
    await r.check(signal);
    assert.equal(state(r), "pending");
    const done = r.start("tools/k");
    await turn();
    assert.equal(state(r), "running");
    assert.throws(() => r.start("tools/k"), /is running already/);
    assert.deepEqual([...r.answer("tools/k", new Map())], [["token", "needed"]]);
    assert.equal(r.answer("tools/k", new Map([["token", new Secret("x")]])).size, 0);
    await done;
    assert.equal(state(r), "complete");
    assert.equal(r.list()[0]?.status, "enrolled");
    assert.equal(stored, 1);
    assert.equal((await w.store.read("tools/k")).fields.get("token"), "x");
  });

  it("an engine without user and mirror runs once while its credential is missing [agent 1.3]", async () => {
    let runs = 0;
    const run = (): Promise<Fields> => Promise.resolve(new Map([["key", String(++runs)]]));
    const r = runner({ interactive: false, run });
    await r.check(signal);
    assert.deepEqual([state(r), runs, stored], ["complete", 1, 1]);
    await r.check(signal);
    const restarted = runner({ interactive: false, run });
    await restarted.check(signal);
    assert.deepEqual([state(restarted), runs], ["complete", 1]);
    await w.store.delete("tools/k");
    await r.check(signal);
    assert.deepEqual([state(r), runs], ["complete", 2]);
    await w.store.delete("tools/k");
    const skipping = runner({ interactive: false, run });
    await skipping.skip("tools/k");
    await skipping.check(signal);
    assert.deepEqual([state(skipping), runs], ["skipped", 2]);
  });

  it("an engine without user does not run while the store is unavailable", async () => {
    let runs = 0;
    const engine: EnrolmentEngine = {
      interactive: false,
      run: () => Promise.resolve(new Map([["key", String(++runs)]])),
    };
    const metadata = (): Promise<never> =>
      Promise.reject(new SecretStoreError("unavailable", "the store does not answer"));
    const store = new Proxy(w.store, {
      get: (target, name) => {
        if (name === "metadata") return metadata;
        const value: unknown = Reflect.get(target, name);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    await assert.rejects(runner(engine, "tools/k", store).check(signal), /does not answer/);
    assert.equal(runs, 0);
  });

  it("running → failed with the reason → running again, or skipped [agent 2.6 17.1]", async () => {
    let works = false;
    const r = runner({
      interactive: true,
      run: () =>
        works ? Promise.resolve(new Map([["a", "b"]])) : Promise.reject(failed("the request was declined")),
    });
    await assert.rejects(r.start("tools/k"), /declined/);
    assert.deepEqual(
      [state(r), r.list()[0]?.status, r.list()[0]?.error],
      ["failed", "error", "the request was declined"],
    );
    works = true;
    await r.start("tools/k");
    assert.equal(state(r), "complete");
  });

  it("pending | failed → skipped, kept over restarts, and back to pending [agent 17.2]", async () => {
    const r = runner(asking);
    await r.skip("tools/k");
    assert.deepEqual([state(r), r.list()[0]?.skipped], ["skipped", true]);
    const next = runner(asking);
    await next.check(signal);
    assert.equal(state(next), "skipped");
    await next.reset("tools/k");
    await next.check(signal);
    assert.equal(state(next), "pending");
    await assert.rejects(next.reset("tools/k"), /is pending/);
  });

  it("an action of the user during a look is not undone by the result of the look [agent 17.3]", async () => {
    // The store is slow to answer whether the credential is there.
    let asked = Promise.withResolvers<void>();
    let answer = Promise.withResolvers<void>();
    const real = w.store.metadata.bind(w.store);
    const metadata: typeof real = async (...args) => {
      const found = real(...args);
      await found.catch(() => undefined);
      asked.resolve();
      await answer.promise;
      return found;
    };
    const store = new Proxy(w.store, {
      get: (target, name) => {
        if (name === "metadata") return metadata;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    const r = runner(asking, "tools/k", store);
    const during = async (subject: EnrolmentRunner, action: () => unknown): Promise<void> => {
      asked = Promise.withResolvers();
      answer = Promise.withResolvers();
      const look = subject.check(signal);
      await asked.promise;
      await action();
      answer.resolve();
      await look;
    };
    await during(r, () => r.skip("tools/k"));
    assert.equal(state(r), "skipped", "the look found nothing under the key");
    await r.reset("tools/k");
    await w.put("tools/k", { token: "old" });
    const next = runner(asking, "tools/k", store);
    await next.check(signal);
    assert.equal(state(next), "complete");
    let done: Promise<void> | undefined;
    await during(next, () => void (done = next.start("tools/k")));
    assert.equal(state(next), "running", "the look found the old one");
    await next.cancel("tools/k");
    await assert.rejects(async () => done);
  });

  it("cancelled before it asks: ends without an answer [agent 17.3]", async () => {
    const go = Promise.withResolvers<void>();
    const r = runner({
      interactive: true,
      run: async (...args) => go.promise.then(() => asking.run(...args)),
    });
    const done = r.start("tools/k");
    const cancelled = r.cancel("tools/k");
    go.resolve();
    await assert.rejects(done, { code: "enrolment_cancelled" });
    await cancelled;
    assert.equal(state(r), "pending");
  });

  it("complete → pending, and stays so until it is done again [agent 17.2]", async () => {
    await w.put("tools/k", { token: "old", note: "kept" });
    const r = runner(asking);
    await r.check(signal);
    assert.equal(state(r), "complete");
    await assert.rejects(r.skip("tools/k"), /is complete/);
    // The command line does it while one daemon runs, which notices it, and another starts later.
    const other = runner(asking);
    await other.look(signal);
    await other.reset("tools/k");
    await r.check(signal);
    assert.equal(state(r), "pending");
    const later = runner(asking);
    await later.check(signal);
    assert.equal(state(later), "pending");
    const done = r.start("tools/k");
    await turn();
    r.answer("tools/k", new Map([["token", new Secret("new")]]));
    await done;
    await later.check(signal);
    assert.equal(state(later), "complete");
    assert.deepEqual(
      [...(await w.store.read("tools/k")).fields],
      [
        ["token", "new"],
        ["note", "kept"],
      ],
    );
  });

  it("a credential that is removed makes it pending again", async () => {
    await w.put("tools/k", { token: "x" });
    const r = runner(asking);
    await r.check(signal);
    await w.store.delete("tools/k");
    await r.check(signal);
    assert.equal(state(r), "pending");
  });

  it("cancelled: as it was before", async () => {
    const r = runner(asking);
    const done = r.start("tools/k");
    await turn();
    await r.cancel("tools/k");
    await assert.rejects(done, /ended/);
    assert.equal(state(r), "pending");
  });

  it("an unknown key is refused", () => {
    assert.throws(() => runner(asking).start("x"), /no enrolment is configured/);
  });
});

describe("a credential that the store does not take", () => {
  const away = new SecretStoreError("unavailable", "the store does not answer");

  /** The store refuses writes while `fault` is set. */
  function stand(engine: EnrolmentEngine = asking): { r: EnrolmentRunner; faults: { write?: Error } } {
    const faults: { write?: Error } = {};
    const store = new Proxy(w.store, {
      get: (target, name) => {
        if (name === "write" && faults.write !== undefined) return () => Promise.reject(faults.write!);
        const value: unknown = Reflect.get(target, name);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    return { r: runner(engine, "tools/k", store), faults };
  }

  async function fail({ r, faults }: ReturnType<typeof stand>): Promise<void> {
    faults.write = away;
    const done = r.start("tools/k");
    await turn();
    r.answer("tools/k", new Map([["token", new Secret("typed-value")]]));
    await assert.rejects(done, /does not answer/);
    assert.deepEqual([state(r), r.prompt("tools/k")], ["failed", { unsaved: true }]);
  }

  it("is kept by the failed enrolment, and a retry stores it without asking [agent 1.4]", async () => {
    const stood = stand();
    await fail(stood);
    await assert.rejects(stood.r.retry("tools/k"), /does not answer/);
    assert.deepEqual([state(stood.r), stood.r.prompt("tools/k").unsaved], ["failed", true]);
    delete stood.faults.write;
    await stood.r.retry("tools/k");
    assert.deepEqual([state(stood.r), stood.r.prompt("tools/k"), stored], ["complete", {}, 1]);
    assert.equal((await w.store.read("tools/k")).fields.get("token"), "typed-value");
    assert.throws(() => stood.r.retry("tools/k"), /is complete/);
  });

  it("that was written although the response was lost completes, and tells its rules", async () => {
    const stood = stand();
    await fail(stood);
    delete stood.faults.write;
    await w.put("tools/k", { token: "typed-value" });
    await stood.r.retry("tools/k");
    assert.deepEqual([state(stood.r), stored], ["complete", 1]);
    assert.equal((await w.store.read("tools/k")).version, 1);
  });

  it("is in no state file or list; a skip, a restart or a new configuration drops it [agent 1.4]", async () => {
    const gone: [string, (r: EnrolmentRunner) => Promise<unknown> | void][] = [
      ["skip", (r) => r.skip("tools/k")],
      [
        "start",
        async (r) => {
          const done = r.start("tools/k");
          await turn();
          assert.notEqual(r.prompt("tools/k").form, undefined, "it asks again");
          await r.cancel("tools/k");
          await assert.rejects(done);
        },
      ],
      ["configuration", (r) => r.configure({ "tools/k": { ...config, description: "other" } }, 60_000)],
    ];
    for (const [name, action] of gone) {
      const stood = stand();
      await fail(stood);
      assert.doesNotMatch(JSON.stringify([stood.r.list(), stood.r.prompt("tools/k")]), /typed-value/);
      for (const file of await readdir(w.places.home, { recursive: true, withFileTypes: true })) {
        if (file.isFile())
          assert.doesNotMatch(await readFile(join(file.parentPath, file.name), "utf8"), /typed-value/);
      }
      await action(stood.r);
      assert.deepEqual(stood.r.prompt("tools/k"), {}, name);
      delete stood.faults.write;
      assert.throws(() => stood.r.retry("tools/k"), { code: "enrolment_state" }, name);
    }
  });

  it("is gone after a quarter of an hour", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const stood = stand();
    await fail(stood);
    t.mock.timers.tick(15 * 60_000);
    assert.deepEqual([state(stood.r), stood.r.prompt("tools/k")], ["failed", {}]);
    assert.throws(() => stood.r.retry("tools/k"), /keeps nothing to store/);
  });

  it("is not stored for another identity than the one that was signed in [agent 1.4]", async () => {
    let displayName = "ada";
    const info = { entityId: undefined, displayName } as unknown as TokenInfo;
    identity = {
      ...embeddedSignIn,
      state: () => ({ ...embeddedSignIn.state(), info: { ...info, displayName } }),
    };
    const stood = stand();
    await fail(stood);
    delete stood.faults.write;
    displayName = "eve";
    await assert.rejects(stood.r.retry("tools/k"), /another user is signed in/);
    assert.deepEqual([state(stood.r), stood.r.prompt("tools/k")], ["failed", {}]);
    await assert.rejects(w.store.read("tools/k"), { code: "not_found" });
  });

  it("of an engine without the user is not kept", async () => {
    const stood = stand({ interactive: false, run: () => Promise.resolve(new Map([["key", "x"]])) });
    stood.faults.write = away;
    await assert.rejects(stood.r.start("tools/k"), /does not answer/);
    assert.deepEqual(stood.r.prompt("tools/k"), {});
  });
});

describe("enrolments that run by themselves", () => {
  it("is kept in step, writes only what differs, and waits after failures [agent 17.4]", async () => {
    let value: Fields | Error = new Map([["a", "1"]]);
    let runs = 0;
    const r = runner({
      interactive: false,
      mirrors: true,
      run: () => {
        runs += 1;
        return value instanceof Error ? Promise.reject(value) : Promise.resolve(value);
      },
    });
    await r.check(signal);
    await r.check(signal);
    assert.deepEqual([state(r), stored, (await w.store.read("tools/k")).version], ["complete", 1, 1]);
    value = new Map([["a", "2"]]);
    await r.check(signal);
    assert.equal((await w.store.read("tools/k")).fields.get("a"), "2");
    value = failed("nothing is stored under shared/x", true);
    await r.check(signal);
    await r.check(signal);
    assert.deepEqual([state(r), runs], ["failed", 4], "the second look comes too early for another try");
    now += 20 * 60_000;
    value = new Map([["a", "2"]]);
    await r.check(signal);
    assert.equal(state(r), "complete");
  });

  it("a token is renewed past half of its life, and a failure leaves it as it is [agent 17.14]", async () => {
    await w.put("tools/k", { token: "one" });
    let refreshes = 0;
    const half = now + 1000;
    const r = runner({
      ...asking,
      refreshAt: (held) => (held.get("token") === "one" ? half : undefined),
      refresh: () => {
        refreshes += 1;
        return refreshes === 1 ? Promise.reject(failed("no")) : Promise.resolve(new Map([["token", "two"]]));
      },
    });
    await r.check(signal);
    assert.equal(refreshes, 0);
    now += 1000;
    await r.check(signal);
    assert.deepEqual([state(r), r.list()[0]?.error], ["complete", "could not be renewed: no"]);
    now += 60_000;
    await r.check(signal);
    assert.equal((await w.store.read("tools/k")).fields.get("token"), "two");
    assert.deepEqual([r.list()[0]?.error, stored], [null, 1]);
  });
});

describe("mergeSecret", () => {
  it("keeps fields that another client writes at the same time [agent 17.13]", async () => {
    await w.put("k", { a: "1" });
    let raced = false;
    const store = {
      ...w.store,
      read: async (path: string) => {
        const found = await w.store.read(path);
        if (!raced) {
          raced = true;
          await w.put("k", { a: "1", theirs: "yes" });
        }
        return found;
      },
      write: w.store.write.bind(w.store),
    } as typeof w.store;
    await mergeSecret(store, "k", new Map([["mine", "yes"]]), signal);
    assert.deepEqual(Object.fromEntries((await w.store.read("k")).fields), {
      a: "1",
      theirs: "yes",
      mine: "yes",
    });
  });
});

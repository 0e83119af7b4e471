import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { LoopMonitor } from "@devplat/base/loop-monitor";
import { silentLogger } from "@devplat/base";
import { SecretStoreError, type SecretChange, type SecretStore } from "@devplat/secret-store";
import { embeddedSignIn, type SignIn } from "../auth/sign-in.ts";
import { AgentError } from "../errors.ts";
import { ObservedStore } from "../secrets/observed-store.ts";
import { StoreHealth } from "../secrets/store-health.ts";
import { StoreWatch } from "./store-watch.ts";
import { assembleLoop } from "../assemble/loop.ts";
import type { Daemon } from "./daemon.ts";
import { HandClock } from "./clock.test-kit.ts";
import { workspace, type Workspace } from "./workspace.test-kit.ts";
import { NO_BOOTSTRAP } from "./status-report.ts";

const WITHOUT_ENROLMENTS = {
  bootstrap: () => NO_BOOTSTRAP,
  enrolments: { list: () => [], onChange: () => undefined, wake: () => undefined },
};

/** The store of a workspace, whose faults and events a test makes. */
class TestStore {
  fault: Error | undefined;
  /** Thrown in place of opening the event stream. */
  watchFault: Error | undefined;
  reads = 0;
  versions = 0;
  /** A held request for a version waits for this. */
  hold: Promise<void> | undefined;
  /** Runs in each request for a version. */
  duringCycle: (() => Promise<void>) | undefined;
  #notify: (() => void) | undefined;
  readonly store: SecretStore;

  constructor(real: SecretStore) {
    const guarded = async <T>(action: () => Promise<T>): Promise<T> => {
      await this.hold;
      if (this.fault !== undefined) throw this.fault;
      return action();
    };
    this.store = {
      driver: "embedded",
      list: (folder) => real.list(folder),
      write: (path, fields) => real.write(path, fields),
      delete: (path) => real.delete(path),
      ping: () => real.ping(),
      close: () => Promise.resolve(),
      metadata: async (path) => {
        this.versions += 1;
        await this.duringCycle?.();
        return guarded(() => real.metadata(path));
      },
      read: (path) => {
        this.reads += 1;
        return guarded(() => real.read(path));
      },
      watch: (signal, opened) => this.#watch(signal, opened),
    };
  }

  event(): void {
    this.#notify?.();
  }

  async *#watch(signal: AbortSignal, opened?: () => void): AsyncIterable<SecretChange> {
    if (this.watchFault !== undefined) throw this.watchFault;
    opened?.();
    while (!signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#notify = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
      if (!signal.aborted) yield { path: "k", kind: "written" };
    }
  }
}

const INTERVAL_MS = 15 * 60_000;
const RULE = { name: "a", key: "k", target: { path: "~/f.yaml", format: "yaml" } };

let w: Workspace;
let clock: HandClock;
let store: TestStore;
let stop: AbortController;
let running: Promise<void> | undefined;
let watch: StoreWatch;
let loops: LoopMonitor;
beforeEach(async () => {
  w = await workspace();
  await w.put("k", { token: "one" });
  clock = new HandClock();
  loops = new LoopMonitor(clock);
  store = new TestStore(w.store);
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await running;
  await w.remove();
});

async function start(signIn: SignIn = embeddedSignIn): Promise<Daemon> {
  const health = new StoreHealth();
  const observed = new ObservedStore({ store: store.store, health });
  const { engine, state } = await w.engine([RULE], { clock, store: observed });
  const facts = {
    version: "0",
    authMethod: "embedded",
    driver: "embedded",
    address: "",
    kvMount: "kv",
    userPrefix: "users/",
    mountpoint: "~/.daemon",
    username: "tester",
    sources: [],
    problems: [],
  } as const;
  const parts = { engine, state, signIn, clock, facts, store: observed, health, logger: silentLogger };
  watch = new StoreWatch(parts);
  const daemon = assembleLoop({
    ...parts,
    ...WITHOUT_ENROLMENTS,
    loops,
    watch,
    intervalMs: INTERVAL_MS,
  });
  running = daemon.run(stop.signal);
  return daemon;
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  // Files are real, and a loaded machine is slow; a test that works never gets near this.
  const end = performance.now() + 20_000;
  while (performance.now() < end) {
    if (await condition()) return;
    await turn();
  }
  assert.fail("did not happen");
}

const idle = (daemon: Daemon) => (): boolean =>
  daemon.status().sync.state === "idle" && daemon.status().sync.last_cycle_at !== null;

describe("the loop", () => {
  it("does a cycle immediately, then one in each poll interval, without reading values [agent 1.1]", async () => {
    const daemon = await start();
    await until(idle(daemon));
    assert.equal(await w.read("f.yaml"), "token: one\n");
    const { versions, reads } = store;
    clock.advance(INTERVAL_MS * 0.8);
    await turn();
    assert.equal(store.versions, versions, "too early");
    clock.advance(INTERVAL_MS * 0.4);
    await until(() => store.versions === versions + 1);
    await until(idle(daemon));
    assert.equal(store.reads, reads);
  });

  it("the poll has jitter of a tenth either way, so many hosts do not ask together [agent 16.2]", async (t) => {
    // Mocked once: of several mocks of one function, all but the first would stay after the test.
    const drawn = { chance: 0 };
    t.mock.method(Math, "random", () => drawn.chance);
    for (const [chance, share] of [
      [0, 0.9],
      [0.5, 1],
      [0.999_999, 1.1],
    ] as const) {
      drawn.chance = chance;
      const daemon = await start();
      await until(idle(daemon));
      const next = Date.parse(daemon.status().sync.next_cycle_at ?? "");
      assert.ok(Math.abs(next - clock.now() - share * INTERVAL_MS) < 100, `${next - clock.now()}`);
      stop.abort();
      await running;
      stop = new AbortController();
    }
  });

  it("does a cycle on an event of the store [agent 16.3]", async () => {
    const daemon = await start();
    await until(idle(daemon));
    assert.equal(daemon.status().sync.events, "connected");
    await w.put("k", { token: "two" });
    store.event();
    await turn();
    clock.advance(20);
    await until(async () => (await w.read("f.yaml")) === "token: two\n");
  });

  it("an event during a cycle is followed by another cycle", async () => {
    let release = (): void => undefined;
    store.hold = new Promise((resolve) => (release = resolve));
    const daemon = await start();
    await until(() => store.versions === 1);
    store.event();
    await turn();
    store.hold = undefined;
    release();
    await until(() => daemon.status().sync.next_cycle_at !== null);
    await turn();
    clock.advance(20);
    await until(() => store.versions === 2);
    await until(idle(daemon));
  });

  it("makes progress with a store that changes during each cycle", async () => {
    const daemon = await start();
    await until(idle(daemon));
    let cycles = 0;
    const faults: (string | undefined)[] = [];
    store.duringCycle = async () => {
      if (++cycles > 3) return;
      store.event();
      await turn();
      clock.advance(40 * 60_000);
      faults.push(loops.fault());
    };
    store.event();
    await turn();
    clock.advance(20);
    for (let cycle = 1; cycle <= 3; cycle++) {
      await until(() => cycles >= cycle && daemon.status().sync.next_cycle_at !== null);
      await turn();
      clock.advance(20);
      await until(() => cycles > cycle);
    }
    await until(idle(daemon));
    assert.deepEqual(faults, [undefined, undefined, undefined]);
  });

  it("syncNow counts a cycle that is running, and its promise resolves at its end", async () => {
    let release = (): void => undefined;
    store.hold = new Promise((resolve) => (release = resolve));
    const daemon = await start();
    await until(() => store.versions === 1);
    assert.equal(daemon.status().sync.state, "running");
    const first = daemon.syncNow();
    assert.equal(first.job, daemon.syncNow().job);
    release();
    assert.deepEqual((await first.done).changed, ["a"]);
    await until(idle(daemon));
    assert.notEqual(daemon.syncNow().job, first.job);
  });

  it("tells the mount and the volumes of a changed secret of a polled store", async () => {
    store.watchFault = new SecretStoreError("unsupported", "no events");
    const daemon = await start();
    await until(() => daemon.status().sync.events === "unsupported");
    const changes: SecretChange[] = [];
    watch.onChange((change) => changes.push(change), stop.signal);
    await daemon.syncNow().done;
    assert.deepEqual(changes, [], "a sync says nothing of secrets");
    daemon.secretChanged("demo/registry");
    assert.deepEqual(changes, [{ path: "demo/registry", kind: "written" }]);
  });

  it("tells its listeners of every change until their signal fires", async () => {
    const daemon = await start();
    const listening = new AbortController();
    let calls = 0;
    daemon.onChange(() => (calls += 1), listening.signal);
    await daemon.syncNow().done;
    assert.ok(calls > 0);
    await until(idle(daemon));
    listening.abort();
    calls = 0;
    await daemon.syncNow().done;
    assert.equal(calls, 0);
  });
});

describe("an outage", () => {
  it("is stale from its start, retried with growing waits, and ends without a restart [agent 16.5]", async () => {
    const daemon = await start();
    await until(idle(daemon));
    store.fault = new SecretStoreError("unavailable", "down", { remedy: "retry" });
    await assert.rejects(daemon.syncNow().done, /down/);
    const status = daemon.status();
    assert.equal(status.sync.state, "stale");
    assert.deepEqual([status.store.reachable, status.store.last_error], [false, "down"]);
    assert.equal(status.rules["a"]?.state, "ok");
    const waits: number[] = [];
    for (let i = 0; i < 8; i++) {
      await until(
        () => daemon.status().sync.state === "stale" && daemon.status().sync.next_cycle_at !== null,
      );
      const wait = Date.parse(daemon.status().sync.next_cycle_at ?? "") - clock.now();
      waits.push(wait);
      const { versions } = store;
      await turn();
      clock.advance(wait);
      await until(() => store.versions > versions);
    }
    assert.ok(
      (waits[0] ?? 0) <= 1200 && (waits.at(-1) ?? 0) > 30_000 && Math.max(...waits) <= 60_000,
      String(waits),
    );
    store.fault = undefined;
    await until(() => daemon.status().sync.next_cycle_at !== null);
    await turn();
    clock.advance(60_000);
    await until(idle(daemon));
    assert.equal(daemon.status().store.last_error, null);
  });

  it("without a token waits with the reason, looks again soon, and drops a refused one [agent 10.25]", async () => {
    let token = false;
    let dropped = 0;
    const signIn: SignIn = {
      ...embeddedSignIn,
      state: () => ({
        ...embeddedSignIn.state(),
        authenticated: token,
        reason: token ? null : "no token found",
      }),
      ensure: () =>
        token ? Promise.resolve() : Promise.reject(new AgentError("not_signed_in", "not signed in")),
      invalidate: () => {
        dropped += 1;
        token = false;
      },
    };
    const daemon = await start(signIn);
    await until(() => daemon.status().sync.next_cycle_at !== null);
    assert.equal(daemon.status().sync.state, "waiting");
    assert.equal(daemon.status().store.last_error, "no token found");
    assert.equal(store.versions, 0);
    token = true;
    await turn();
    clock.advance(5000);
    await until(idle(daemon));
    store.fault = new SecretStoreError("unauthenticated", "no longer valid");
    await assert.rejects(daemon.syncNow().done);
    assert.equal(dropped, 1);
    assert.equal(daemon.status().sync.state, "waiting");
  });
});

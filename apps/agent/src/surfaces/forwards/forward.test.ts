import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "@devplat/base";
import { until } from "@devplat/testkit";
import { HandClock } from "../../sync/clock.test-kit.ts";
import { ForwardError } from "./errors/forward-error.ts";
import type { RemoteEntry } from "./file/remote-entry.ts";
import { Forward, type OpenConnection } from "./forward.ts";
import { Forwards } from "./forwards.ts";
import { NetworkWatch } from "./network-watch.ts";
import { ConnectionError, type Failure } from "./openssh/failure.ts";
import { ProofWatch } from "./proof-watch.ts";

const ENTRY: RemoteEntry = { host: "dev", port: 22, remote_socket: "~/a.sock", enabled: true };
const MINUTE_MS = 60_000;

/** Connections that a test opens, loses and answers for. */
class Connections {
  readonly log: string[] = [];
  ours = true;
  fault: Error | undefined;
  /** Attempts wait here until they are given up. */
  hangs = false;
  /** Attempts wait for it. */
  gate: Promise<void> = Promise.resolve();
  #count = 0;
  #lose: (failure: Failure) => void = () => undefined;

  readonly open: OpenConnection = async (entry, former, signal) => {
    const number = ++this.#count;
    this.log.push(`open ${number} ${entry.remote_socket} ${former?.path ?? "first"}`);
    if (this.hangs) {
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
    }
    await this.gate;
    if (this.fault !== undefined) throw this.fault;
    const { promise, resolve } = Promise.withResolvers<Failure>();
    this.#lose = resolve;
    return {
      proven: true,
      socket: { path: `/home${entry.remote_socket.slice(1)}`, modified: number },
      ended: promise,
      isOurs: async () => this.ours,
      lendBy: async ({ token_ttl: ttl }) => void this.log.push(`lend ${number} by ${ttl}`),
      close: async () => void this.log.push(`close ${number}`),
      discard: async () => void this.log.push(`discard ${number}`),
    };
  };

  lose(failure: Failure): void {
    this.#lose(failure);
  }
}

function stand(): { connections: Connections; clock: HandClock; forward: Forward } {
  const connections = new Connections();
  const clock = new HandClock();
  const parts = {
    open: connections.open,
    proofs: new ProofWatch(clock),
    clock,
    logger: silentLogger,
    random: () => 0.5,
    changed: () => undefined,
  };
  return { connections, clock, forward: new Forward(parts, ENTRY) };
}
const reaches = (forward: Forward, phase: string): Promise<unknown> =>
  until(
    () => forward.state.phase === phase,
    () => `the state is ${forward.state.phase}`,
  );

describe("a forward", () => {
  it("comes up, reconnects after a loss, and hands on where its socket was", async () => {
    const { connections, clock, forward } = stand();
    await reaches(forward, "connected");
    assert.equal(forward.socketPath, "/home/a.sock");
    connections.lose({ class: "unreachable", message: "lost" });
    await reaches(forward, "offline");
    assert.deepEqual(forward.state.failure, { class: "unreachable", message: "lost" });
    clock.advance(499);
    assert.equal(forward.state.phase, "offline");
    clock.advance(1);
    await reaches(forward, "connected");
    assert.equal(forward.state.reconnects, 1);
    await forward.stop();
    const log = ["open 1 ~/a.sock first", "discard 1", "open 2 ~/a.sock /home/a.sock", "close 2"];
    assert.deepEqual(connections.log, log);
  });

  it("closes the connection before it opens one for another configuration", async () => {
    const { connections, forward } = stand();
    await reaches(forward, "connected");
    forward.update({ ...ENTRY, remote_socket: "~/b.sock" });
    await until(() => connections.log.length === 3);
    assert.deepEqual(connections.log, ["open 1 ~/a.sock first", "close 1", "open 2 ~/b.sock first"]);
    await reaches(forward, "connected");
    forward.update({ ...ENTRY, enabled: false });
    assert.equal(forward.state.phase, "disabled");
    await until(() => connections.log.at(-1) === "close 2");
    forward.update(ENTRY);
    await reaches(forward, "connected");
    await forward.stop();
  });

  it("keeps its connection when only settings of lent tokens change", async () => {
    const { connections, forward } = stand();
    await reaches(forward, "connected");
    forward.update({ ...ENTRY, token_ttl: MINUTE_MS });
    assert.deepEqual([forward.state.phase, forward.state.attempt], ["connected", 1]);
    assert.deepEqual(connections.log, ["open 1 ~/a.sock first", `lend 1 by ${MINUTE_MS}`]);
    // Nothing is lent over a connection that has ended.
    connections.fault = new ConnectionError({ class: "authentication", message: "no" });
    connections.lose({ class: "unreachable", message: "lost" });
    await reaches(forward, "offline");
    forward.update({ ...ENTRY, token_ttl: 2 * MINUTE_MS });
    await reaches(forward, "authentication-error");
    assert.equal(forward.state.attempt, 2);
    // A change during an attempt counts for the connection that comes of it.
    connections.fault = undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    connections.gate = promise;
    forward.trigger("retry");
    await until(() => connections.log.at(-1)?.startsWith("open 3"));
    forward.update({ ...ENTRY, token_ttl: 3 * MINUTE_MS });
    resolve();
    await reaches(forward, "connected");
    assert.equal(connections.log.at(-1), `lend 3 by ${3 * MINUTE_MS}`);
    await forward.stop();
  });

  it("gives up an attempt when it is disabled or the network changes", async () => {
    const { connections, forward } = stand();
    await reaches(forward, "connected");
    connections.hangs = true;
    forward.trigger("edit");
    await until(() => connections.log.some((line) => line.startsWith("open 2")));
    forward.trigger("network");
    await until(() => connections.log.some((line) => line.startsWith("open 3")));
    forward.trigger("retry");
    await forward.stop();
    assert.equal(connections.log.filter((line) => line.startsWith("open")).length, 3);
    assert.equal(forward.state.phase, "disabled");
  });

  it("notices within a minute and five seconds that its socket leads elsewhere", async () => {
    const { connections, clock, forward } = stand();
    await reaches(forward, "connected");
    const step = async (ms: number): Promise<void> => {
      // Everything that waits on the clock has to have begun to wait.
      await new Promise((resolve) => setTimeout(resolve, 20));
      clock.advance(ms);
      await new Promise((resolve) => setTimeout(resolve, 20));
    };
    await step(MINUTE_MS);
    connections.ours = false;
    await step(MINUTE_MS);
    connections.ours = true;
    await step(5000);
    assert.equal(forward.state.attempt, 1, "one wrong proof is not enough");
    connections.ours = false;
    await step(MINUTE_MS);
    connections.fault = new ConnectionError({ class: "socket-bind", message: "taken" });
    await step(5000);
    await reaches(forward, "offline");
    assert.deepEqual([forward.state.attempt, forward.state.failure?.message], [2, "taken"]);
    assert.deepEqual(connections.log.slice(1), ["discard 1", "open 2 ~/a.sock /home/a.sock"]);
    await forward.stop();
  });

  it("waits long after a fault of the configuration, whose message is safe to show", async () => {
    const { connections, clock, forward } = stand();
    await reaches(forward, "connected");
    connections.fault = new ForwardError("ssh_unusable", "Cannot use \u001b[2J ssh");
    connections.lose({ class: "timeout", message: "" });
    await reaches(forward, "offline");
    clock.advance(500);
    await until(() => forward.state.failure?.class === "local");
    const { failure, retryAt } = forward.state;
    assert.equal(failure?.message, String.raw`Cannot use \u{1b}[2J ssh`);
    assert.equal(retryAt, clock.monotonic() + 5 * MINUTE_MS);
    await forward.stop();
  });
});

describe("all forwards", () => {
  it("follow the entries: unchanged ones are left alone, others start, change and end", async () => {
    const connections = new Connections();
    const clock = new HandClock();
    const network = { look: async () => undefined };
    const forwards = new Forwards({
      open: connections.open,
      clock,
      logger: silentLogger,
      random: () => 0,
      network,
    });
    let changes = 0;
    const unsubscribe = forwards.subscribe(() => changes++);
    forwards.reconcile([ENTRY, { ...ENTRY, host: "other", enabled: false }]);
    await reaches(forwards.get("DEV"), "connected");
    forwards.reconcile([{ ...ENTRY, host: "other", enabled: false }, { ...ENTRY }]);
    assert.deepEqual(
      forwards.list().map(({ entry }) => entry.host),
      ["other", "dev"],
    );
    assert.deepEqual(connections.log, ["open 1 ~/a.sock first"]);
    forwards.reconcile([]);
    await until(() => connections.log.at(-1) === "close 1");
    assert.throws(
      () => forwards.get("dev"),
      (error) => error instanceof ForwardError && error.code === "host_unknown",
    );
    assert.ok(changes >= 4);
    unsubscribe();
    await forwards.stop();
    forwards.reconcile([ENTRY]);
    assert.deepEqual(forwards.list(), []);
  });

  it("are tried again after a change of the network, watched while one is down", async () => {
    const connections = new Connections();
    const clock = new HandClock();
    let looks = 0;
    let cause: "network" | undefined;
    const network = { look: async () => (looks++, cause) };
    const forwards = new Forwards({
      open: connections.open,
      clock,
      logger: silentLogger,
      random: () => 0,
      network,
    });
    connections.fault = new ConnectionError({ class: "authentication", message: "no" });
    forwards.reconcile([ENTRY]);
    await reaches(forwards.get("dev"), "authentication-error");
    connections.fault = undefined;
    cause = "network";
    await until(() => {
      clock.advance(1000);
      return forwards.get("dev").state.phase === "connected";
    });
    cause = undefined;
    await new Promise((resolve) => setTimeout(resolve, 50));
    clock.advance(1000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const before = looks;
    clock.advance(10_000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(looks, before);
    await forwards.stop();
  });
});

describe("the watch over network and sleep", () => {
  it("tells a change of routes, a wake from sleep, and time that passes apart", async () => {
    const clock = new HandClock();
    let slept = 0;
    let routes = "default via 10.0.0.1";
    const view = { bootMs: () => clock.monotonic() + slept, network: async () => routes };
    const watch = new NetworkWatch({ view, clock });
    assert.equal(await watch.look(), undefined);
    clock.advance(3_600_000);
    assert.equal(await watch.look(), undefined);
    routes = "default via 10.0.0.2";
    assert.equal(await watch.look(), "network");
    assert.equal(await watch.look(), undefined);
    slept += 3000;
    assert.equal(await watch.look(), "wake");
    assert.equal(await watch.look(), undefined);
  });
});

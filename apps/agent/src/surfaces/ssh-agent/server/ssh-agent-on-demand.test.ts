import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "@devplat/base";
import { until } from "@devplat/testkit";
import { parseConfig } from "../../../config/load.ts";
import type { Config } from "../../../config/schema.ts";
import { HandClock } from "../../../sync/clock.test-kit.ts";
import type { SshAgentStatus } from "../../../ssh-agent-view.ts";
import { identityView, sshAgentStatus } from "../memory-ssh-agent.test-kit.ts";
import { SshAgentOnDemand, type BuiltSshAgent } from "./ssh-agent-on-demand.ts";

function config(enabled: boolean): Config {
  return parseConfig({
    path: "c.yaml",
    text: `store: {driver: embedded}\nagent: {enabled: ${enabled}}\n`,
  });
}

const EMPTY = sshAgentStatus();

/** Notes what is done with the SSH agent, and holds its status. */
class Recorder {
  readonly calls: string[] = [];
  status = EMPTY;
  slept = false;
  failure: Error | undefined;
  changed: () => void = () => undefined;
  readonly clock = new HandClock();
  enabled = true;

  readonly onDemand = new SshAgentOnDemand({
    config: () => config(this.enabled),
    build: async () => this.#build(),
    hasSlept: () => {
      const { slept } = this;
      this.slept = false;
      return slept;
    },
    clock: this.clock,
    logger: silentLogger,
  });

  /** Sets the state of one key. */
  setKey(state: SshAgentStatus["sources"][number]["identities"][number]["state"] | undefined): void {
    const identities = state === undefined ? [] : [identityView("ada@work", { state })];
    this.status = { ...EMPTY, sources: [{ name: "team", source: "kv", error: null, identities }] };
    this.changed();
  }

  #build(): BuiltSshAgent {
    if (this.failure !== undefined) throw this.failure;
    const note = async (call: string): Promise<void> => void this.calls.push(call);
    const agent = {
      status: () => this.status,
      refresh: () => note("refresh"),
      forget: () => void this.calls.push("forget"),
      onChange: (listener: () => void) => (this.changed = listener),
      listenFor: async (host: string) => {
        if (host === "broken") throw new Error("no socket");
        return `/run/${host}.sock`;
      },
    } as unknown as BuiltSshAgent["agent"];
    return {
      agent,
      surface: {
        start: () => note("start"),
        reconcile: () => note("reconcile"),
        status: () => ({}),
        stop: () => note("stop"),
      },
      configure: () => void this.calls.push("configure"),
      keyMade: () => void this.calls.push("key made"),
      close: () => note("close"),
    };
  }
}

const LISTING = { relay: undefined, knownHosts: "" };

describe("SshAgentOnDemand", () => {
  it("off: nothing is built, and the status has no part for it", async () => {
    const stand = new Recorder();
    stand.enabled = false;
    const { onDemand } = stand;
    await onDemand.start();
    assert.deepEqual([stand.calls, onDemand.status(), onDemand.agent], [[], {}, undefined]);
    assert.equal(await onDemand.socketFor("build", LISTING), undefined);
    await onDemand.stop();
  });

  it("a reload turns it on, changes it, and turns it off", async () => {
    const stand = new Recorder();
    stand.enabled = false;
    const { onDemand, calls } = stand;
    await onDemand.start();
    await onDemand.reconcile(config(true));
    assert.deepEqual(calls.splice(0), ["start", "refresh"]);
    assert.deepEqual(onDemand.status(), { ssh_agent: EMPTY });
    await onDemand.reconcile(config(true));
    assert.deepEqual(calls.splice(0), ["configure", "reconcile"]);
    await onDemand.reconcile(config(false));
    assert.deepEqual(calls.splice(0), ["stop", "close"]);
    assert.deepEqual([onDemand.status(), onDemand.agent], [{}, undefined]);
    await onDemand.reconcile(config(true));
    assert.deepEqual(calls.splice(0), ["start", "refresh"]);
    await onDemand.stop();
    assert.deepEqual(calls, ["stop", "close"]);
  });

  it("code that cannot be loaded does not keep the daemon from its start", async () => {
    const stand = new Recorder();
    stand.failure = new Error("broken");
    await stand.onDemand.start();
    assert.equal(stand.onDemand.agent, undefined);
    stand.failure = undefined;
    await stand.onDemand.reconcile(config(true));
    assert.ok(stand.onDemand.agent !== undefined);
    await stand.onDemand.stop();
  });

  it("keys are forgotten after sleep", async () => {
    const stand = new Recorder();
    await stand.onDemand.start();
    stand.slept = true;
    await until(async () => {
      stand.clock.advance(1000);
      return stand.calls.includes("forget");
    });
    await stand.onDemand.stop();
  });

  it("forwards hear of a key only when one can be used that could not before", async () => {
    const stand = new Recorder();
    let heard = 0;
    stand.onDemand.onNewKey(() => heard++);
    await stand.onDemand.start();
    stand.setKey("needs-passphrase");
    assert.equal(heard, 0);
    stand.setKey("unlocked");
    assert.equal(heard, 1);
    stand.setKey("unlocked");
    stand.setKey("needs-passphrase");
    stand.setKey(undefined);
    assert.equal(heard, 1);
    stand.setKey("ready");
    assert.equal(heard, 2);
    await stand.onDemand.stop();
  });

  it("a forward gets a socket, or none if it cannot be opened", async () => {
    const stand = new Recorder();
    await stand.onDemand.start();
    assert.equal(await stand.onDemand.socketFor("build", LISTING), "/run/build.sock");
    assert.equal(await stand.onDemand.socketFor("broken", LISTING), undefined);
    await stand.onDemand.stop();
  });

  it("listeners hear of changes until their signal fires", async () => {
    const stand = new Recorder();
    let heard = 0;
    const stop = new AbortController();
    stand.onDemand.onChange(() => heard++, stop.signal);
    await stand.onDemand.start();
    const before = heard;
    stand.changed();
    assert.equal(heard, before + 1);
    stop.abort();
    stand.changed();
    assert.equal(heard, before + 1);
    await stand.onDemand.stop();
  });
});

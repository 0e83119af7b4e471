import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { silentLogger, systemClock } from "@devplat/base";
import { tempFolder, until, type TempFolder } from "@devplat/testkit";
import type { TrustSettings } from "../connection-files.ts";
import { ForwardError } from "../errors/forward-error.ts";
import type { RemoteEntry } from "../file/remote-entry.ts";
import { RemotesFile } from "../file/remotes-file.ts";
import type { OpenConnection } from "../forward.ts";
import { Forwards } from "../forwards.ts";
import type { LearnedKeys, LearnOptions } from "../host-keys.ts";
import { ConnectionError, type Failure } from "../openssh/failure.ts";
import type { NewRemote } from "../remote-control.ts";
import { TokenLender } from "../tokens/token-lender.ts";
import { Remotes } from "./remotes.ts";

const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ7WlK1yxWcAhWi0iPQ6bLbSwxSJ1YF1zQ0bXkQbY0Zb";
const OTHER_KEY = KEY.replace("IJ7W", "IK7W");
const FINGERPRINT = `SHA256:${"A".repeat(43)}`;
const SOCKET = "~/.ssh/daemon.laptop.sock";
const never = new AbortController().signal;
const codeIs = (code: string) => (error: unknown) => error instanceof ForwardError && error.code === code;

const remoteOf = (host: string, more: Partial<NewRemote> = {}): NewRemote => ({
  host,
  settings: {},
  hostKey: undefined,
  accepted: [FINGERPRINT],
  force: false,
  ...more,
});

/** Remotes over a real file, with connections that the test makes and ends. */
class Stand {
  readonly file: RemotesFile;
  readonly path: string;
  readonly remotes: Remotes;
  readonly forwards: Forwards;
  readonly trust: { -readonly [Key in keyof TrustSettings]: TrustSettings[Key] } = {
    authorities: [],
    ignoreHostKeys: false,
  };
  /** Hosts of connections that are open. */
  readonly open: string[] = [];
  readonly learned: LearnOptions[] = [];
  key = KEY;
  failure: Failure | undefined;
  /** Connections wait for it. */
  gate: Promise<void> = Promise.resolve();
  dials = 0;

  constructor(folder: string) {
    this.path = join(folder, "ssh.yaml");
    this.file = new RemotesFile({ path: this.path, defaultSocket: SOCKET });
    const open: OpenConnection = async (entry, _former, signal) => {
      this.dials += 1;
      await this.gate;
      signal.throwIfAborted();
      if (this.failure !== undefined) throw new ConnectionError(this.failure);
      this.open.push(entry.host);
      const close = async (): Promise<void> => {
        this.open.splice(this.open.indexOf(entry.host), 1);
      };
      return {
        proven: true,
        socket: { path: "/home/ada/.ssh/daemon.sock", modified: undefined },
        ended: new Promise<Failure>(() => undefined),
        isOurs: async () => true,
        lendBy: async () => undefined,
        close,
        discard: close,
      };
    };
    const common = { clock: systemClock, logger: silentLogger };
    this.forwards = new Forwards({
      ...common,
      open,
      network: { look: async () => undefined },
      random: () => 0.5,
    });
    this.remotes = new Remotes({
      ...common,
      file: this.file,
      defaultSocket: SOCKET,
      forwards: this.forwards,
      lender: new TokenLender({ ...common, children: undefined, ask: undefined }),
      learn: async (entry, options) => this.#learn(entry, options),
      dial: (entry, signal) => open(entry, undefined, signal),
      trust: () => this.trust,
    });
  }

  text(): Promise<string> {
    return readFile(this.path, "utf8");
  }

  hosts(): string[] {
    return this.remotes.list().map(({ host }) => host);
  }

  async connected(): Promise<void> {
    await until(
      () => this.remotes.list().every(({ state }) => state === "connected"),
      () => JSON.stringify(this.remotes.list()),
    );
  }

  #learn(entry: RemoteEntry, options: LearnOptions): LearnedKeys {
    this.learned.push(options);
    if (entry.host_key !== undefined && !options.again)
      return { state: "trusted", host_key: entry.host_key, hop_keys: {} };
    const offered = {
      host: `${entry.host}:${entry.port}`,
      type: "ssh-ed25519",
      fingerprint: FINGERPRINT,
      key: this.key,
      known: false,
      pinned: undefined,
    };
    if (!options.accepted.includes(FINGERPRINT)) return { state: "unknown", offered };
    return { state: "trusted", host_key: this.key, hop_keys: { "jump:22": OTHER_KEY } };
  }
}

describe("Remotes", () => {
  let folder: TempFolder;
  let stand: Stand;
  beforeEach(async () => {
    folder = await tempFolder("remotes");
    stand = new Stand(folder.path);
    await stand.remotes.begin();
  });
  afterEach(async () => {
    stand.remotes.stop();
    await stand.forwards.stop();
    await folder.remove();
  });
  const { promise: forever } = Promise.withResolvers<void>();

  it("a key that nobody has confirmed is offered, and nothing is saved or dialled", async () => {
    const result = await stand.remotes.add(remoteOf("build", { accepted: [] }), never);
    assert.equal(result.state, "unconfirmed");
    assert.deepEqual(stand.hosts(), []);
    assert.equal(stand.dials, 0);
    await assert.rejects(stand.text(), { code: "ENOENT" });
  });

  it("a confirmed key is pinned with those of the way, and the forward comes up", async () => {
    const result = await stand.remotes.add(remoteOf("Build", { settings: { port: 2222 } }), never);
    assert.equal(result.state, "saved");
    assert.match(await stand.text(), new RegExp(`host_key: ${KEY}`));
    assert.match(await stand.text(), /jump:22/);
    assert.match(await stand.text(), /remote_socket: ~\/\.ssh\/daemon\.laptop\.sock/);
    await stand.connected();
    const remote = stand.remotes.get("BUILD");
    assert.deepEqual([remote.host, remote.port, remote.trust, remote.error], ["Build", 2222, "pin", null]);
    assert.equal(remote.remote_socket_expanded, "/home/ada/.ssh/daemon.sock");
    assert.equal(remote.since, stand.remotes.get("build").since);
  });

  it("a failed connection saves nothing, and its error says what to do", async () => {
    stand.failure = { class: "authentication", message: "Permission denied" };
    await assert.rejects(stand.remotes.add(remoteOf("build"), never), (error: unknown) => {
      assert.ok(error instanceof ConnectionError);
      assert.match(error.hint ?? "", /ssh-add -l.* build /);
      return true;
    });
    await assert.rejects(stand.text(), { code: "ENOENT" });
    // The host can be added afterwards.
    stand.failure = undefined;
    assert.equal((await stand.remotes.add(remoteOf("build"), never)).state, "saved");
  });

  it("force saves without a connection and without a key", async () => {
    await stand.remotes.add(remoteOf("build", { force: true, settings: { enabled: false } }), never);
    assert.equal(stand.dials, 0);
    assert.deepEqual(stand.learned, []);
    const { state, host_key, trust } = stand.remotes.get("build");
    assert.deepEqual([state, host_key, trust], ["disabled", null, "none"]);
  });

  it("of two concurrent additions of one host, in any case, one wins", async () => {
    const results = await Promise.allSettled(
      ["build", "BUILD", "Build", "other"].map((host) => stand.remotes.add(remoteOf(host), never)),
    );
    assert.deepEqual(
      results.map(({ status }) => status),
      ["fulfilled", "rejected", "rejected", "fulfilled"],
    );
    for (const result of results) {
      if (result.status === "rejected") assert.ok(codeIs("host_exists")(result.reason));
    }
    assert.deepEqual(stand.hosts().toSorted(), ["build", "other"]);
    await assert.rejects(stand.remotes.add(remoteOf("bUILD"), never), codeIs("host_exists"));
  });

  it("an addition whose caller has gone saves nothing", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    stand.gate = promise;
    const caller = new AbortController();
    const added = stand.remotes.add(remoteOf("build"), caller.signal);
    await until(() => stand.dials === 1);
    caller.abort();
    resolve();
    await assert.rejects(added);
    await assert.rejects(stand.text(), { code: "ENOENT" });
    assert.deepEqual(stand.open, []);
  });

  it("the end of the daemon ends additions", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    stand.gate = promise;
    const added = stand.remotes.add(remoteOf("build"), never);
    await until(() => stand.dials === 1);
    stand.remotes.stop();
    resolve();
    await assert.rejects(added, /stopping/);
    await assert.rejects(stand.text(), { code: "ENOENT" });
  });

  it("a person who adds the same host in the file at that time wins", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    stand.gate = promise;
    const added = stand.remotes.add(remoteOf("build"), never);
    await until(() => stand.dials === 1);
    await writeFile(stand.path, "remotes: [{host: build, port: 99, enabled: false}]\n", { mode: 0o600 });
    resolve();
    await assert.rejects(added, codeIs("host_exists"));
    await stand.remotes.reload();
    assert.equal(stand.remotes.get("build").port, 99);
  });

  it("an edit changes the given keys, and null takes the default again", async () => {
    await stand.remotes.add(remoteOf("build", { settings: { port: 2222, user: "ada" } }), never);
    await stand.remotes.edit("BUILD", { offers: ["browse"], token_ttl: 60_000 });
    const edited = await stand.remotes.edit("build", { port: null, remote_socket: null, user: null });
    assert.deepEqual(
      [edited.port, edited.user, edited.offers, edited.token_ttl, edited.remote_socket],
      [22, null, ["browse"], "1m", SOCKET],
    );
    await assert.rejects(stand.remotes.edit("other", {}), codeIs("host_unknown"));
    await assert.rejects(stand.remotes.remove("other"), codeIs("host_unknown"));
    await assert.rejects(stand.remotes.repin("other", [], never), codeIs("host_unknown"));
    assert.throws(() => stand.remotes.retry("other"), codeIs("host_unknown"));
    assert.throws(() => stand.remotes.get("other"), codeIs("host_unknown"));
  });

  it("concurrent changes of many remotes are all kept", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `host${index}`);
    await Promise.all(names.map((host) => stand.remotes.add(remoteOf(host), never)));
    await Promise.all([
      ...names.slice(0, 6).map((host) => stand.remotes.edit(host, { enabled: false })),
      ...names.slice(6).map((host) => stand.remotes.remove(host)),
    ]);
    assert.deepEqual(stand.hosts().toSorted(), names.slice(0, 6).toSorted());
    assert.ok(stand.remotes.list().every(({ state }) => state === "disabled"));
    await until(() => stand.open.length === 0);
  });

  it("repin asks again, replaces the pin, and keeps all else", async () => {
    await stand.remotes.add(remoteOf("build", { settings: { user: "ada" } }), never);
    stand.key = OTHER_KEY;
    assert.equal((await stand.remotes.repin("build", [], never)).state, "unconfirmed");
    assert.equal(stand.remotes.get("build").host_key?.key, KEY);
    const pinned = await stand.remotes.repin("build", [FINGERPRINT], never);
    assert.ok(pinned.state === "saved");
    assert.equal(pinned.remote.host_key?.key, OTHER_KEY);
    assert.deepEqual(
      pinned.remote.hop_keys.map(({ host, key }) => [host, key]),
      [["jump:22", OTHER_KEY]],
    );
    assert.equal(stand.remotes.get("build").user, "ada");
    assert.equal(stand.learned.at(-1)?.again, true);
  });

  it("a file that is not valid leaves forwards up, and is taken up when it is", async () => {
    await stand.remotes.add(remoteOf("build"), never);
    await stand.connected();
    await writeFile(stand.path, "remotes: [{host: build, port: many}]\n");
    await stand.remotes.reload();
    assert.match(stand.remotes.fileProblem() ?? "", /ssh\.yaml:1:\d+: remotes\[0\]\.port/);
    assert.equal(stand.remotes.get("build").state, "connected");
    await assert.rejects(stand.remotes.edit("build", { port: 1 }), codeIs("file_invalid"));
    await assert.rejects(stand.remotes.add(remoteOf("other"), never), codeIs("file_invalid"));
    await writeFile(stand.path, "remotes: [{host: other, enabled: false}]\n");
    await stand.remotes.reload();
    assert.equal(stand.remotes.fileProblem(), undefined);
    assert.deepEqual(stand.hosts(), ["other"]);
    await rm(stand.path);
    await stand.remotes.reload();
    assert.deepEqual(stand.hosts(), []);
    await until(() => stand.open.length === 0);
  });

  it("remotes that wait for the first sign-in say so, and can be changed", async () => {
    stand = new Stand(folder.path);
    await stand.remotes.add(remoteOf("build"), never);
    assert.deepEqual(stand.forwards.list(), []);
    const { state, error } = stand.remotes.get("build");
    assert.equal(state, "offline");
    assert.match(error?.message ?? "", /first sign-in/);
    stand.remotes.retry("build");
    await stand.remotes.edit("build", { enabled: false });
    assert.equal(stand.remotes.get("build").error, null);
    await stand.remotes.edit("build", { enabled: true });
    await stand.remotes.begin();
    await stand.connected();
  });

  it("tells by what a key is accepted", async () => {
    stand.gate = forever;
    for (const host of ["a.example.com", "b.other.com", "c.example.com"]) {
      const hostKey = host.startsWith("c") ? KEY : undefined;
      await stand.remotes.add(remoteOf(host, { force: true, hostKey }), never);
    }
    stand.trust.authorities = [`@cert-authority *.example.com ${OTHER_KEY}`];
    const trust = (): string[] => stand.remotes.list().map((remote) => remote.trust);
    assert.deepEqual(trust(), ["ca", "none", "pin"]);
    stand.trust.ignoreHostKeys = true;
    assert.deepEqual(trust(), ["none", "none", "none"]);
    // Their attempts wait for nothing that comes.
    await Promise.all(
      ["a.example.com", "b.other.com", "c.example.com"].map((host) =>
        stand.remotes.edit(host, { enabled: false }),
      ),
    );
    stand = new Stand(folder.path);
  });

  it("listeners hear of changes until their signal fires", async () => {
    const ended = new AbortController();
    let calls = 0;
    stand.remotes.onChange(() => (calls += 1), ended.signal);
    await stand.remotes.add(remoteOf("build"), never);
    await stand.connected();
    assert.ok(calls > 1);
    const before = calls;
    ended.abort();
    await stand.remotes.edit("build", { enabled: false });
    assert.equal(calls, before);
  });
});

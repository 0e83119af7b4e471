import assert from "node:assert/strict";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, startSshd, type Sshd } from "@devplat/testkit";
import { ForwardConnection } from "./connection.ts";
import { ConnectionError } from "./openssh/failure.ts";
import { entryFor, loginTo, TestStation } from "./forwards.test-kit.ts";
import { learnHostKeys, type LearnedKeys, type LearnOptions } from "./host-keys.ts";
import type { RemoteEntry } from "./file/remote-entry.ts";

/** A hang ends by itself. */
const TIMEOUT_MS = 240_000;
const NEVER = new AbortController().signal;
const NOTHING_ACCEPTED: LearnOptions = { accepted: [], again: false };

describe("learning a host key", { timeout: TIMEOUT_MS }, () => {
  let station: TestStation;
  let sshd: Sshd;
  let jump: Sshd;
  let known = "";
  before(async () => {
    station = await TestStation.create();
    [sshd, jump] = [await startSshd(), await startSshd()];
    known = join(station.path, "known_hosts");
  });
  after(async () => {
    await Promise.all([sshd.stop(), jump.stop()]);
    await station.remove();
  });

  async function learn(entry: RemoteEntry, options = NOTHING_ACCEPTED): Promise<LearnedKeys> {
    const parts = {
      ...(await station.parts(loginTo(sshd, jump))),
      knownHostsFiles: [known, join(station.path, "no-file")],
    };
    const learned = await learnHostKeys(parts, entry, options, NEVER);
    // Nothing of it is left in the folder of the connections.
    assert.deepEqual(
      (await readdir(station.runtime)).filter((name) => !name.startsWith("127.0.0.1.")),
      [],
    );
    return learned;
  }
  async function fingerprintOf({ userKey }: Sshd): Promise<string> {
    const { stdout } = await run("ssh-keygen", ["-l", "-f", join(userKey, "../host.pub")]);
    return stdout.split(" ")[1] ?? "";
  }

  it("shows type and fingerprint as ssh-keygen, and whether the user knows the key", async () => {
    const unpinned = entryFor(sshd, { host_key: undefined });
    const offered = {
      host: `127.0.0.1:${sshd.port}`,
      type: "ssh-ed25519",
      fingerprint: await fingerprintOf(sshd),
      key: sshd.hostKey,
      known: false,
      pinned: undefined,
    };
    assert.deepEqual(await learn(unpinned), { state: "unknown", offered });
    await writeFile(known, `[127.0.0.1]:${sshd.port} ${sshd.hostKey}\n`);
    assert.deepEqual(await learn(unpinned), { state: "unknown", offered: { ...offered, known: true } });
    // The key of another port, and another key of this one.
    await writeFile(known, `127.0.0.1 ${sshd.hostKey}\n[127.0.0.1]:${sshd.port} ${jump.hostKey}\n`);
    assert.deepEqual(await learn(unpinned), { state: "unknown", offered });
    await writeFile(known, `@revoked * ${sshd.hostKey}\n`);
    await assert.rejects(learn(unpinned), /revoked/);
    await rm(known);
    const accepted = await learn(unpinned, { accepted: [offered.fingerprint], again: false });
    assert.deepEqual(accepted, { state: "trusted", host_key: sshd.hostKey, hop_keys: {} });
  });

  it("shows the pinned key and the one that is offered now", async () => {
    const entry = entryFor(sshd, { host_key: jump.hostKey });
    assert.equal((await learn(entry)).state, "trusted");
    const learned = await learn(entry, { accepted: [await fingerprintOf(jump)], again: true });
    assert.ok(learned.state === "unknown");
    assert.deepEqual(
      [learned.offered.fingerprint, learned.offered.pinned],
      [await fingerprintOf(sshd), await fingerprintOf(jump)],
    );
  });

  it("asks for the key of each hop first, and goes through it once it is confirmed", async () => {
    const hop = `127.0.0.1:${jump.port}`;
    const entry = entryFor(sshd, { host_key: undefined, proxy_jump: hop });
    const first = await learn(entry);
    assert.ok(first.state === "unknown");
    assert.deepEqual([first.offered.host, first.offered.key], [hop, jump.hostKey]);
    const accepted = [first.offered.fingerprint];
    const second = await learn(entry, { accepted, again: false });
    assert.ok(second.state === "unknown");
    assert.deepEqual([second.offered.host, second.offered.key], [`127.0.0.1:${sshd.port}`, sshd.hostKey]);
    accepted.push(second.offered.fingerprint);
    const trusted = { state: "trusted", host_key: sshd.hostKey, hop_keys: { [hop]: jump.hostKey } };
    assert.deepEqual(await learn(entry, { accepted, again: false }), trusted);
    const wrong = { ...entry, hop_keys: { [hop]: sshd.hostKey } };
    await assert.rejects(
      learn(wrong),
      (error) => error instanceof ConnectionError && error.failure.class === "host-key",
    );
  });

  it("a confirmed key of a hop is not one of the host behind it", async () => {
    // One server in both places: a hop that answers for the remote itself.
    const hop = `localhost:${sshd.port}`;
    const entry = entryFor(sshd, { host_key: undefined, proxy_jump: hop });
    const fingerprint = await fingerprintOf(sshd);
    const asked = await learn(entry, { accepted: [fingerprint], again: false });
    assert.ok(asked.state === "unknown");
    assert.deepEqual(
      [asked.offered.host, asked.offered.fingerprint],
      [`127.0.0.1:${sshd.port}`, fingerprint],
    );
    const both = await learn(entry, { accepted: [fingerprint, fingerprint], again: false });
    assert.deepEqual(both, { state: "trusted", host_key: sshd.hostKey, hop_keys: { [hop]: sshd.hostKey } });
  });

  it("needs no key of a host whose certificate an authority has signed", async () => {
    const at = (name: string): string => join(station.path, name);
    for (const name of ["ca", "hostkey"])
      await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", at(name)]);
    await run("ssh-keygen", ["-q", "-s", at("ca"), "-I", "host", "-h", "-n", "127.0.0.1", at("hostkey.pub")]);
    const settings = [`HostKey ${at("hostkey")}`, `HostCertificate ${at("hostkey-cert.pub")}`];
    const certified = await startSshd({ settings });
    try {
      const entry = entryFor(certified, { host_key: undefined });
      const plain = await learn(entry);
      assert.ok(plain.state === "unknown");
      assert.equal(
        plain.offered.key,
        (await readFile(at("hostkey.pub"), "utf8")).split(" ").slice(0, 2).join(" "),
      );
      station.trust.authorities = [
        `@cert-authority 127.0.0.1 ${(await readFile(at("ca.pub"), "utf8")).trim()}`,
      ];
      assert.deepEqual(await learn(entry), { state: "trusted", host_key: undefined, hop_keys: {} });
    } finally {
      station.trust.authorities = [];
      await certified.stop();
    }
  });

  it("does not log in", async () => {
    const files = await startSshd({ settings: ["LogLevel VERBOSE"] });
    const parts = { ...(await station.parts(loginTo(files))), knownHostsFiles: [] };
    const learned = await learnHostKeys(
      parts,
      entryFor(files, { host_key: undefined }),
      NOTHING_ACCEPTED,
      NEVER,
    );
    assert.equal(learned.state, "unknown");
    const log = files.output();
    assert.doesNotMatch(log, /Accepted|publickey/);
    await files.stop();
  });

  it("a server with another key between learning and connecting is refused", async () => {
    const first = await startSshd();
    const unpinned = entryFor(first, { host_key: undefined });
    const learned = await learn(unpinned);
    assert.ok(learned.state === "unknown");
    await first.pause();
    await first.resume(true);
    const parts = await station.parts(loginTo(first));
    const entry = { ...unpinned, host_key: learned.offered.key };
    const refused = (error: unknown): boolean =>
      error instanceof ConnectionError && error.failure.class === "host-key";
    await assert.rejects(ForwardConnection.open(parts, entry, undefined, NEVER), refused);
    await first.stop();
  });

  it("a host that does not answer, or is none, is a failure with its class", async () => {
    const failure = (name: string) => (error: unknown) =>
      error instanceof ConnectionError && error.failure.class === name;
    await assert.rejects(learn(entryFor(sshd, { host_key: undefined, port: 1 })), failure("refused"));
    await assert.rejects(
      learn(entryFor(sshd, { host_key: undefined, host: "no-such.invalid" })),
      failure("dns"),
    );
  });
});

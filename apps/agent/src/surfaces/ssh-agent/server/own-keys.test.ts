import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { describe, it } from "node:test";
import { Secret, silentLogger } from "@devplat/base";
import { encodePublicKey, publicKeyOf } from "@devplat/ssh-protocol";
import { HandClock } from "../../../sync/clock.test-kit.ts";
import { AgentLock } from "./agent-lock.ts";
import { OwnKeys } from "./own-keys.ts";
import { MemorySource, identityOf } from "./ssh-agent.test-kit.ts";
import type { IdentitySource, SshIdentity } from "../identity.ts";

function newIdentity(comment: string, more: Partial<SshIdentity> = {}): SshIdentity {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const pair = { publicKey: publicKeyOf(publicKey), privateKey };
  return identityOf({ pair, blob: encodePublicKey(pair.publicKey) }, comment, {}, more);
}

const comments = async (keys: OwnKeys): Promise<string[]> =>
  (await keys.list()).map(({ identity }) => identity.comment);

describe("OwnKeys", () => {
  it("lists the keys of all sources in order, although one of them fails", async () => {
    const broken = new MemorySource("broken", [newIdentity("known before")]);
    broken.fault = new Error("the store does not answer");
    const sources = [
      new MemorySource("a", [newIdentity("first")]),
      broken,
      new MemorySource("b", [newIdentity("last")]),
    ];
    const keys = new OwnKeys(() => sources, new HandClock(), silentLogger);
    assert.deepEqual(await comments(keys), ["first", "known before", "last"]);
  });

  it("a source that hangs lists the keys that it knows, and its request is given up", async () => {
    let given: AbortSignal | undefined;
    const hanging: IdentitySource = Object.assign(new MemorySource("hanging", [newIdentity("known")]), {
      identities: (signal: AbortSignal): Promise<never> => {
        given = signal;
        return new Promise<never>(() => undefined);
      },
    });
    const clock = new HandClock();
    const sources = [hanging, new MemorySource("b", [newIdentity("b")])];
    const listed = comments(new OwnKeys(() => sources, clock, silentLogger));
    clock.advance(1999);
    assert.equal(given?.aborted, false);
    clock.advance(1);
    assert.deepEqual(await listed, ["known", "b"]);
    assert.equal(given?.aborted, true);
  });

  it("asks again after 8 s, or when it is told to", async () => {
    const clock = new HandClock();
    const source = new MemorySource("a", [newIdentity("a")]);
    const keys = new OwnKeys(() => [source], clock, silentLogger);
    await Promise.all([keys.list(), keys.list()]);
    clock.advance(7999);
    await keys.list();
    assert.equal(source.listings, 1);
    clock.advance(1);
    await keys.list();
    assert.equal(source.listings, 2);
    keys.clear();
    await keys.list();
    assert.equal(source.listings, 3);
  });

  it("leaves out certificates that end while the list is cached", async () => {
    const clock = new HandClock();
    const source = new MemorySource("a", [newIdentity("ends", { certificateExpiresAt: clock.now() + 10 })]);
    const keys = new OwnKeys(() => [source], clock, silentLogger);
    assert.deepEqual(await comments(keys), ["ends"]);
    assert.equal(keys.known().length, 1);
    clock.advance(10);
    assert.deepEqual(await comments(keys), []);
    assert.equal(keys.known().length, 0);
  });

  it("lists nothing while it is hidden", async () => {
    const keys = new OwnKeys(
      () => [new MemorySource("a", [newIdentity("a")])],
      new HandClock(),
      silentLogger,
    );
    keys.setHidden(true);
    assert.deepEqual(await comments(keys), []);
    keys.setHidden(false);
    assert.deepEqual(await comments(keys), ["a"]);
  });
});

describe("AgentLock", () => {
  const secret = (text: string): Secret<Buffer> => new Secret(Buffer.from(text));

  it("opens with its passphrase only, and after five wrong ones not within 12 s", async () => {
    const clock = new HandClock();
    const lock = new AgentLock(clock);
    assert.equal(await lock.unlock(secret("")), false);
    assert.equal(await lock.lock(secret("right")), true);
    for (const wrong of ["", "right ", "Right", "righ", "x"]) {
      assert.equal(await lock.unlock(secret(wrong)), false);
    }
    assert.equal(await lock.unlock(secret("right")), false);
    assert.equal(lock.isLocked, true);
    clock.advance(12_000);
    assert.equal(await lock.unlock(secret("right")), true);
    assert.equal(lock.isLocked, false);
  });

  it("takes one try at a time", async () => {
    const lock = new AgentLock(new HandClock());
    await lock.lock(secret("right"));
    const tries = await Promise.all([lock.unlock(secret("wrong")), lock.unlock(secret("right"))]);
    assert.deepEqual(tries, [false, false]);
    assert.equal(await lock.unlock(secret("right")), true);
  });

  it("an empty passphrase locks and opens it, too", async () => {
    const lock = new AgentLock(new HandClock());
    assert.equal(await lock.lock(secret("")), true);
    assert.equal(await lock.unlock(secret("x")), false);
    assert.equal(await lock.unlock(secret("")), true);
  });
});

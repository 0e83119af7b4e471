import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { SecretStoreError, openEmbeddedStore, userRoot, type SecretStore } from "@devplat/secret-store";
import {
  decodePublicKeyLine,
  encodeOpenSshKey,
  fingerprint,
  publicKeyOf,
  publicKeyOfBlob,
  verify,
} from "@devplat/ssh-protocol";
import { tempFolder, until } from "@devplat/testkit";
import { SshKey } from "../../../enrol/ssh-key.ts";
import { observed } from "../../../secrets/folder/secret-folder.test-kit.ts";
import { HandClock } from "../../../sync/clock.test-kit.ts";
import type { SshIdentity } from "../identity.ts";
import { PASSPHRASE, openssl, sshKeygen } from "./keys.test-kit.ts";
import { TestSignIn, never, section, sourcesStand } from "./sources.test-kit.ts";

const DATA = Buffer.from("data to be signed");
const typed = (text: string) => () => new Secret(text);

async function assertSigns(identity: SshIdentity): Promise<void> {
  const key = publicKeyOfBlob(identity.blob);
  assert.ok(verify(key, await identity.sign(DATA, "sha256", never()), DATA));
}

describe("SSH keys of secrets", () => {
  let store: SecretStore;
  let remove: () => Promise<void>;
  let plain: { readonly privateText: string; readonly publicText: string };
  let locked: typeof plain;
  const team = { agent: section([{ source: "kv", name: "team", path_prefix: "ssh/team" }]), enrolments: {} };
  before(async () => {
    const folder = await tempFolder("ssh-sources");
    remove = () => folder.remove();
    const root = userRoot({ mount: "kv", prefix: "users/", username: "ada" });
    store = await openEmbeddedStore({ folder: folder.path, root });
    plain = await sshKeygen(["-t", "ed25519"]);
    locked = await sshKeygen(["-t", "ecdsa"], PASSPHRASE, ["-a", "2"]);
    await put("ssh/team/plain", { private_key: plain.privateText });
    await put("ssh/team/deep/locked", { private_key: locked.privateText });
    await put("ssh/team/password", { password: "hunter2" });
    await put("ssh/teammate", { private_key: (await sshKeygen(["-t", "ed25519"])).privateText });
  });
  after(async () => {
    await store.close();
    await remove();
  });
  const put = (path: string, fields: Readonly<Record<string, string>>) =>
    store.write(path, new Map(Object.entries(fields)));
  /** A folder of its own for one test. */
  const only = (folder: string, more: Readonly<Record<string, unknown>> = {}) => ({
    agent: section([{ source: "kv", name: "own", path_prefix: folder }], more),
    enrolments: {},
  });

  it("every key below the prefix is listed with its public half, and plain ones sign", async () => {
    await using stand = sourcesStand(store, team);
    assert.deepEqual(await stand.comments(), ["ssh/team/deep/locked", "ada@example"]);
    const identity = await stand.identity("ada@example");
    assert.deepEqual(identity.blob, decodePublicKeyLine(plain.publicText).blob);
    assert.equal(identity.state, "ready");
    await assertSigns(identity);
    const other = await stand.identity("ssh/team/deep/locked");
    assert.deepEqual(other.blob, decodePublicKeyLine(locked.publicText).blob);
    assert.equal(other.state, "needs-passphrase");
    assert.equal(stand.problems(), "");
    assert.equal(stand.user.questions.length, 0);
  });

  it("an RSA key signs with the hash that was asked for", async () => {
    await put("rsa/key", {
      private_key: await openssl(["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]),
    });
    await using stand = sourcesStand(store, only("rsa"));
    const identity = await stand.identity("rsa/key");
    for (const hash of ["sha256", "sha512"] as const) {
      const signature = await identity.sign(DATA, hash, never());
      assert.match(signature.toString("latin1"), new RegExp(`rsa-sha2-${hash.slice(3)}`));
      assert.ok(verify(publicKeyOfBlob(identity.blob), signature, DATA));
    }
  });

  it("a passphrase is asked for at the first signature, and once for concurrent ones", async () => {
    await using stand = sourcesStand(store, team);
    const identity = await stand.identity("ssh/team/deep/locked");
    let changes = 0;
    stand.sources.list[0]?.onChange(() => changes++, never());
    stand.user.answer = typed(PASSPHRASE);
    await Promise.all([assertSigns(identity), assertSigns(identity), assertSigns(identity)]);
    await assertSigns(identity);
    assert.deepEqual(stand.user.questions, [{ comment: "ssh/team/deep/locked", wrongBefore: false }]);
    assert.equal(identity.state, "unlocked");
    assert.equal(changes, 1);
  });

  it("a wrong passphrase is asked for again, three times in all", async () => {
    await using stand = sourcesStand(store, team);
    const identity = await stand.identity("ssh/team/deep/locked");
    stand.user.answer = typed("wrong");
    await assert.rejects(identity.sign(DATA, undefined, never()), { code: "passphrase_wrong" });
    assert.deepEqual(
      stand.user.questions.map(({ wrongBefore }) => wrongBefore),
      [false, true, true],
    );
    assert.equal(identity.state, "needs-passphrase");
    stand.user.answer = typed(PASSPHRASE);
    await assertSigns(identity);
  });

  it("without an answer the signature is refused, and says how to unlock the key", async () => {
    await using stand = sourcesStand(store, team);
    const identity = await stand.identity("ssh/team/deep/locked");
    await assert.rejects(identity.sign(DATA, undefined, never()), {
      code: "not_confirmed",
      message: "nobody has typed the passphrase of the key ssh/team/deep/locked",
      hint: "Run 'agent keys unlock'.",
    });
  });

  it("a client that gives up ends the question", async () => {
    await using stand = sourcesStand(store, team);
    const identity = await stand.identity("ssh/team/deep/locked");
    const ended = Promise.withResolvers<void>();
    stand.user.answer = (signal) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          ended.resolve();
          resolve(undefined);
        });
      });
    const giveUp = new AbortController();
    const signing = identity.sign(DATA, undefined, giveUp.signal);
    await until(() => stand.user.questions.length === 1);
    giveUp.abort(new Error("given up"));
    await assert.rejects(signing, /given up/);
    await ended.promise;
  });

  it("unlocking by path or fingerprint lets a waiting signature go on", async () => {
    await using stand = sourcesStand(store, team);
    const identity = await stand.identity("ssh/team/deep/locked");
    await assert.rejects(stand.sources.unlockKey("ssh/team/deep/locked", new Secret("wrong")), {
      code: "passphrase_wrong",
    });
    for (const unknown of ["ssh/team/deep", "", "SHA256:x"]) {
      await assert.rejects(stand.sources.unlockKey(unknown, new Secret(PASSPHRASE)), { code: "key_unknown" });
    }
    stand.user.answer = () => new Promise(() => undefined);
    const signing = assertSigns(identity);
    await until(() => stand.user.questions.length === 1);
    await stand.sources.unlockKey(fingerprint(identity.blob), new Secret(PASSPHRASE));
    await signing;
    assert.equal(identity.state, "unlocked");
    stand.sources.list[0]?.forget();
    await stand.sources.unlockKey("ssh/team/deep/locked", new Secret(PASSPHRASE));
    assert.equal(identity.state, "unlocked");
  });

  it("an unlocked key is forgotten after key_lifetime, by both clocks, and by forget()", async () => {
    const clock = new HandClock();
    await using stand = sourcesStand(
      store,
      { ...team, agent: { ...team.agent, key_lifetime: 3_600_000 } },
      { clock },
    );
    stand.user.answer = typed(PASSPHRASE);
    const identity = await stand.identity("ssh/team/deep/locked");
    const isLocked = (): boolean =>
      identity.state === "needs-passphrase" && identity.unlockedUntil === undefined;
    await assertSigns(identity);
    assert.equal(identity.unlockedUntil, clock.now() + 3_600_000);
    clock.advance(3_599_999);
    assert.equal(isLocked(), false);
    clock.advance(1);
    assert.equal(isLocked(), true);
    await assertSigns(identity);
    // The host slept, or its clock was set.
    clock.jump(3_600_000);
    assert.equal(isLocked(), true);
    await assertSigns(identity);
    clock.jump(-3_600_000);
    clock.advance(3_600_000);
    assert.equal(isLocked(), true);
    await assertSigns(identity);
    stand.sources.list[0]?.forget();
    assert.equal(isLocked(), true);
    await assertSigns(identity);
    assert.equal(stand.user.questions.length, 5);
  });

  it("after forget() a signature reads the key again, and is refused if that fails", async () => {
    const requests = observed(store);
    await using stand = sourcesStand(requests.store, team, { events: false });
    const identity = await stand.identity("ada@example");
    requests.calls.length = 0;
    await assertSigns(identity);
    assert.deepEqual(requests.calls, []);
    stand.sources.list[0]?.forget();
    requests.before = () => {
      throw new SecretStoreError("unavailable", "the store is down");
    };
    await assert.rejects(identity.sign(DATA, undefined, never()), {
      code: "key_unusable",
      message: "cannot read the key ssh/team/plain (ada@example) again: the store is down",
    });
    requests.before = () => undefined;
    requests.calls.length = 0;
    await assertSigns(identity);
    assert.deepEqual(requests.calls, ["read ssh/team/plain"]);
  });

  it("a key that is forgotten while its passphrase is tried stays locked", async () => {
    await using stand = sourcesStand(store, team);
    const identity = await stand.identity("ssh/team/deep/locked");
    stand.user.answer = () => {
      stand.sources.list[0]?.forget();
      return new Secret(PASSPHRASE);
    };
    await assert.rejects(identity.sign(DATA, undefined, never()), { code: "locked" });
    assert.equal(identity.state, "needs-passphrase");
  });

  it("a new key is listed when its secret is stored, and a removed one is not", async () => {
    await using stand = sourcesStand(store, only("fresh"));
    assert.deepEqual(await stand.comments(), []);
    await put("fresh/a", { private_key: plain.privateText });
    await until(async () => (await stand.comments()).join() === "ada@example");
    await store.delete("fresh/a");
    await until(async () => (await stand.comments()).length === 0);
  });

  it("a new version with the same key stays unlocked; another key does not", async () => {
    await put("versions/a", { private_key: locked.privateText });
    await using stand = sourcesStand(store, only("versions"));
    stand.user.answer = typed(PASSPHRASE);
    await assertSigns(await stand.identity("versions/a"));
    await put("versions/a", {
      private_key: locked.privateText,
      public_key: `${locked.publicText.trim()} moved`,
    });
    const moved = await until(() => stand.identity("ada@example moved"));
    assert.equal(moved.state, "unlocked");
    const other = await sshKeygen(["-t", "ed25519"], PASSPHRASE, ["-a", "2"]);
    await put("versions/a", { private_key: other.privateText });
    assert.equal((await until(() => stand.identity("versions/a"))).state, "needs-passphrase");
  });

  it("one key in two secrets is listed once", async () => {
    await put("twice/a", { private_key: plain.privateText });
    await put("twice/b", { private_key: plain.privateText });
    await using stand = sourcesStand(store, only("twice"));
    assert.deepEqual(await stand.comments(), ["ada@example"]);
  });

  it("a stored passphrase opens its key without a question; a wrong one asks", async () => {
    await put("stored/right", { private_key: locked.privateText, passphrase: PASSPHRASE });
    await using stand = sourcesStand(store, only("stored"));
    const identity = await stand.identity("stored/right");
    assert.equal(identity.state, "ready");
    await assertSigns(identity);
    assert.equal(stand.user.questions.length, 0);
    await put("stored2/wrong", { private_key: locked.privateText, passphrase: "wrong" });
    await using second = sourcesStand(store, only("stored2"));
    second.user.answer = typed(PASSPHRASE);
    await assertSigns(await second.identity("stored2/wrong"));
    assert.equal(second.user.questions.length, 1);
  });

  it("a PKCS#8 key under a passphrase is listed once it is unlocked", async () => {
    const pem = await openssl(["-algorithm", "ed25519"], PASSPHRASE);
    await put("pkcs8/nameless", { private_key: pem });
    await using stand = sourcesStand(store, only("pkcs8"));
    assert.deepEqual(await stand.comments(), []);
    assert.match(stand.problems(), /^pkcs8\/nameless: its public half is not known before it is unlocked/);
    await assert.rejects(stand.sources.unlockKey("pkcs8/nameless", new Secret("wrong")), {
      code: "passphrase_wrong",
    });
    await stand.sources.unlockKey("pkcs8/nameless", new Secret(PASSPHRASE));
    const identity = await stand.identity("pkcs8/nameless");
    assert.equal(identity.state, "unlocked");
    await assertSigns(identity);
    assert.equal(stand.problems(), "");
    await put("pkcs8/stored", { private_key: pem, passphrase: PASSPHRASE });
    await until(async () => (await stand.comments()).length === 1);
  });

  it("a public_key of another key does not make its owner's key sign", async () => {
    const pem = await openssl(["-algorithm", "ed25519"], PASSPHRASE);
    await put("swapped/a", { private_key: pem, public_key: plain.publicText });
    await using stand = sourcesStand(store, only("swapped"));
    stand.user.answer = typed(PASSPHRASE);
    const identity = await stand.identity("ada@example");
    await assert.rejects(identity.sign(DATA, undefined, never()), {
      code: "key_unusable",
      message: "the private key of swapped/a (ada@example) belongs to another public key",
    });
  });

  it("a broken secret and a denied path hide no other key, and the problem names them", async () => {
    await put("mixed/a", { private_key: "hunter2" });
    await put("mixed/b", { private_key: plain.privateText });
    await put("mixed/c", { private_key: locked.privateText });
    const requests = observed(store);
    requests.before = (call) => {
      if (call === "read mixed/c") throw new SecretStoreError("denied", "the token may not read it");
    };
    await using stand = sourcesStand(requests.store, only("mixed"), { events: false });
    assert.deepEqual(await stand.comments(), ["ada@example"]);
    assert.equal(
      stand.problems(),
      "mixed/a: the text is not one block between BEGIN and END lines; mixed/c: the token may not read it",
    );
  });

  it("keys stay usable while the store is down, and it does not delay a listing", async () => {
    const clock = new HandClock();
    const requests = observed(store);
    await using stand = sourcesStand(requests.store, team, { events: false, clock });
    await until(async () => (await stand.comments()).length === 2);
    requests.before = () => {
      throw new SecretStoreError("unavailable", "the store is down");
    };
    clock.advance(1000);
    await assertSigns(await stand.identity("ada@example"));
    assert.equal(stand.problems(), "the store is down");
    const { promise: go, resolve } = Promise.withResolvers<void>();
    requests.before = () => go;
    clock.advance(1000);
    requests.calls.length = 0;
    const listing = stand.comments();
    await until(() => requests.calls.length > 0);
    clock.advance(1500);
    assert.equal((await listing).length, 2);
    assert.match(stand.problems(), /^the store has not answered within 1.5 s/);
    resolve();
    await until(() => stand.problems() === "");
  });

  it("listings that follow each other send no request", async () => {
    const clock = new HandClock();
    const requests = observed(store);
    await using stand = sourcesStand(requests.store, team, { events: false, clock });
    await until(async () => (await stand.comments()).length === 2);
    requests.calls.length = 0;
    clock.advance(999);
    await stand.comments();
    assert.equal(requests.calls.length, 0);
    clock.advance(1000);
    await stand.comments();
    assert.deepEqual(requests.calls.toSorted(), [
      "list ssh/team/",
      "list ssh/team/deep/",
      "version ssh/team/deep/locked",
      "version ssh/team/password",
      "version ssh/team/plain",
    ]);
  });

  it("at sign-out private keys are forgotten, and another user's keys are read again", async () => {
    const requests = observed(store);
    await using stand = sourcesStand(requests.store, team, { events: false });
    stand.user.answer = typed(PASSPHRASE);
    const identity = await stand.identity("ssh/team/deep/locked");
    await assertSigns(identity);
    stand.signIn.set(undefined);
    assert.equal(identity.state, "needs-passphrase");
    // The same user signs in again, and a signature waits for that.
    const signing = assertSigns(identity);
    stand.signIn.set("ada");
    await signing;
    assert.equal(identity.state, "unlocked");
    requests.before = () => {
      throw new SecretStoreError("unavailable", "the store is down");
    };
    stand.signIn.set("eve");
    assert.deepEqual(await stand.comments(), []);
    assert.equal(identity.state, "needs-passphrase");
  });

  it("keys that could not be listed before the sign-in are listed after it", async () => {
    const requests = observed(store);
    requests.before = () => {
      throw new SecretStoreError("unauthenticated", "there is no token for the store");
    };
    const signIn = new TestSignIn();
    signIn.set(undefined);
    await using stand = sourcesStand(requests.store, team, { events: false, signIn });
    await until(() => stand.problems() === "there is no token for the store");
    requests.before = () => undefined;
    signIn.set("ada");
    await until(() => stand.sources.list[0]?.known().length === 2);
    assert.equal(stand.problems(), "");
  });

  it("a key that is not known yet is looked up when it is unlocked", async () => {
    await using stand = sourcesStand(store, only("later"), { events: false });
    assert.deepEqual(await stand.comments(), []);
    await put("later/locked", { private_key: locked.privateText });
    await stand.sources.unlockKey("later/locked", new Secret(PASSPHRASE));
    assert.equal((await stand.identity("later/locked")).state, "unlocked");
  });

  it("a refresh lists a key that was stored a moment ago", async () => {
    await using stand = sourcesStand(store, only("moment"), { events: false, clock: new HandClock() });
    assert.deepEqual(await stand.comments(), []);
    await put("moment/a", { private_key: plain.privateText });
    stand.sources.lookAgain();
    assert.deepEqual(await stand.comments(), ["ada@example"]);
  });

  it("a changed configuration keeps unlocked keys of unchanged sources", async () => {
    await using stand = sourcesStand(store, team);
    stand.user.answer = typed(PASSPHRASE);
    const identity = await stand.identity("ssh/team/deep/locked");
    await assertSigns(identity);
    const teamSource = { source: "kv", name: "team", path_prefix: "ssh/team" };
    stand.sources.configure({ agent: section([{ source: "enrolments" }, teamSource]), enrolments: {} });
    assert.deepEqual(
      stand.sources.list.map(({ name, kind }) => `${name} ${kind}`),
      ["enrolments enrolments", "team kv"],
    );
    assert.equal((await stand.identity("ssh/team/deep/locked")).state, "unlocked");
    stand.sources.configure({
      agent: section([{ ...teamSource, hosts: ["*.example.com"], confirm: "always" }]),
      enrolments: {},
    });
    const changed = await stand.identity("ssh/team/deep/locked");
    assert.deepEqual(changed.restrictions, {
      hosts: ["*.example.com"],
      via: undefined,
      namespaces: undefined,
      confirm: "always",
    });
    assert.equal(changed.state, "needs-passphrase");
    assert.equal(identity.state, "needs-passphrase");
  });

  it("a key of an enrolment is usable when it is stored, without its passphrase", async () => {
    const config = {
      agent: section([{ source: "enrolments" }]),
      enrolments: { "work/key": { engine: "ssh" }, other: { engine: "prompt" } } as never,
    };
    await using stand = sourcesStand(store, config);
    assert.deepEqual(await stand.comments(), []);
    const engine = new SshKey({
      passphrase: "required",
      comment: "made",
      onKey: (pair) => stand.sources.keyMade(pair),
    });
    const ask = () => Promise.resolve(new Map([["passphrase", new Secret(PASSPHRASE)]]));
    const fields = await engine.run({ visit: () => undefined, ask }, never());
    await store.write("work/key", fields);
    await put("other", { private_key: plain.privateText });
    const identity = await until(() => stand.identity("made"));
    assert.equal(identity.state, "unlocked");
    await assertSigns(identity);
    assert.deepEqual(await stand.comments(), ["made"]);
    assert.equal(stand.user.questions.length, 0);
    stand.sources.list[0]?.forget();
    assert.equal(identity.state, "needs-passphrase");
  });

  it("a new key that is not stored in time is forgotten", async () => {
    const clock = new HandClock();
    await using stand = sourcesStand(store, only("late"), { clock });
    const { privateKey } = generateKeyPairSync("ed25519");
    stand.sources.keyMade({ privateKey, publicKey: publicKeyOf(privateKey) });
    clock.advance(15 * 60_000);
    const passphrase = new Secret(PASSPHRASE);
    await put("late/a", { private_key: encodeOpenSshKey(privateKey, { comment: "late", passphrase }) });
    assert.equal((await until(() => stand.identity("late/a"))).state, "needs-passphrase");
  });
});

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { Secret, silentLogger, type Clock } from "@devplat/base";
import { SecretStoreError, type TokenInfo } from "@devplat/secret-store";
import { AgentError } from "../errors.ts";
import { IdentityPin } from "./token/identity-pin.ts";
import { TokenSignIn, type TokenOffer, type TokenSignInParts } from "./sign-in.ts";
import { SEAL_MARKER, TokenFile } from "./token/token-file.ts";
import { tokenInfo } from "./token/token-info.test-kit.ts";

let folder = "";
let tokenFile = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "sign-in-"));
});
after(() => rm(folder, { recursive: true, force: true }));
beforeEach(async () => {
  tokenFile = join(folder, "token");
  for (const name of ["token", "identity.json"]) await rm(join(folder, name), { force: true });
});

const never = new AbortController().signal;
const INFO = tokenInfo();

/** A clock whose time changes only when a test changes it. */
class StillClock implements Clock {
  time = 1_000_000;
  now = (): number => this.time;
  monotonic = (): number => this.time;
  sleep = (): Promise<void> => Promise.resolve();
}

function signIn(
  environment: NodeJS.ProcessEnv,
  valid: Record<string, Partial<TokenInfo>>,
  more: Partial<TokenSignInParts> = {},
) {
  const asked: string[] = [];
  const renewed: string[] = [];
  const clock = new StillClock();
  const subject = new TokenSignIn({
    environment,
    tokenFile: new TokenFile(tokenFile),
    pin: new IdentityPin(folder, true),
    api: {
      lookup: async (token: Secret) => {
        asked.push(token.reveal());
        const info = valid[token.reveal()];
        if (info === undefined) throw new SecretStoreError("unauthenticated", "no");
        return { ...INFO, ...info };
      },
      renew: async (token) => void renewed.push(token.reveal()),
    },
    borrow: async function* () {},
    automatic: undefined,
    renewal: true,
    clock,
    logger: silentLogger,
    ...more,
  });
  return { subject, asked, renewed, clock };
}

const down = (): Promise<never> =>
  Promise.reject(new SecretStoreError("unavailable", "down", { remedy: "retry" }));

describe("token order", () => {
  it("AGENT_TOKEN, then the token file, each proven by the store [agent 10.1]", async () => {
    await writeFile(tokenFile, "file\n", { mode: 0o600 });
    const first = signIn({ AGENT_TOKEN: "env" }, { env: {}, file: {} });
    await first.subject.ensure(never);
    assert.equal(first.subject.state().source, "environment");
    const second = signIn({ AGENT_TOKEN: "bad" }, { file: {} });
    await second.subject.ensure(never);
    assert.deepEqual(second.asked, ["bad", "file"]);
    assert.equal(second.subject.state().source, "file");
    assert.equal(second.subject.token()?.reveal(), "file");
  });

  it("then a peer's token, then one by certificate [agent 10.3]", async () => {
    const lent = { token: new Secret("lent"), borrowedFrom: "/p.sock" };
    async function* borrow() {
      yield lent;
    }
    const automatic = (): Promise<TokenOffer> => Promise.resolve({ token: new Secret("own") });
    const first = signIn({}, { lent: {}, own: {} }, { borrow, automatic });
    await first.subject.ensure(never);
    assert.equal(first.subject.state().source, "peer");
    assert.equal(first.subject.state().borrowedFrom, "/p.sock");
    const second = signIn({}, { own: {} }, { borrow, automatic });
    await second.subject.ensure(never);
    assert.equal(second.subject.state().source, "login");
  });

  it("nothing valid: not signed in, with what to do and without the token", async () => {
    await writeFile(tokenFile, "hunter2", { mode: 0o600 });
    const { subject } = signIn({}, {});
    await assert.rejects(subject.ensure(never), (error: Error & { hint?: string }) => {
      assert.match(`${error.message} ${error.hint}`, /does not accept the token of .*AGENT_TOKEN/);
      return !error.message.includes("hunter2");
    });
    assert.equal(subject.state().authenticated, false);
    assert.equal(subject.token(), undefined);
  });

  it("a token file that is wider than 0600 is not even read [agent 10.5]", async () => {
    await writeFile(tokenFile, "file", { mode: 0o600 });
    await chmod(tokenFile, 0o640);
    const { subject, asked } = signIn({}, { file: {} });
    await assert.rejects(subject.ensure(never), /others can read or write it/);
    assert.deepEqual(asked, []);
  });

  it("a token file of another user is not read, and neither is a pipe in its place [agent 10.6]", async (t) => {
    await writeFile(tokenFile, "file", { mode: 0o600 });
    const uid = process.geteuid?.() ?? 0;
    const owner = t.mock.method(process as { geteuid(): number }, "geteuid", () => uid + 1);
    await assert.rejects(signIn({}, { file: {} }).subject.ensure(never), /it belongs to another user/);
    owner.mock.restore();
    await rm(tokenFile);
    execFileSync("mkfifo", ["-m", "600", tokenFile]);
    await assert.rejects(signIn({}, {}).subject.ensure(never), /it is not a regular file/);
  });

  it("a sealed token is never taken for a token where nothing can unseal it [agent 10.7]", async () => {
    await writeFile(tokenFile, `${SEAL_MARKER}abc`, { mode: 0o600 });
    const { subject, asked } = signIn({}, {});
    await assert.rejects(subject.ensure(never), /sealed to this host's TPM/);
    assert.deepEqual(asked, []);
  });

  it("an unreachable store does not refuse a token", async () => {
    await writeFile(tokenFile, "file", { mode: 0o600 });
    const { subject } = signIn({}, {}, { api: { lookup: down, renew: down } });
    await assert.rejects(subject.ensure(never), { code: "unavailable" });
  });

  it("the store being away is the reason until it has answered", async () => {
    await writeFile(tokenFile, "file", { mode: 0o600 });
    const api = { lookup: down as TokenSignInParts["api"]["lookup"], renew: down };
    const { subject } = signIn({}, {}, { api });
    await assert.rejects(subject.ensure(never), { code: "unavailable" });
    assert.deepEqual(
      [subject.state().reason, subject.state().storeUnreachable, subject.state().authenticated],
      ["down", true, false],
    );
    api.lookup = () => Promise.reject(new SecretStoreError("unauthenticated", "no"));
    await assert.rejects(subject.ensure(never), /does not accept the token/);
    assert.equal(subject.state().storeUnreachable, undefined);
    api.lookup = () => Promise.resolve(INFO);
    await writeFile(tokenFile, "another", { mode: 0o600 });
    await subject.ensure(never);
    assert.deepEqual([subject.state().reason, subject.state().storeUnreachable], [null, undefined]);
  });

  it("a store that is silent is the reason while it is still waited for [agent 20.5]", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    await writeFile(tokenFile, "file", { mode: 0o600 });
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<TokenInfo>();
    const lookup = (): Promise<TokenInfo> => (asked.resolve(), answer.promise);
    const { subject } = signIn({}, {}, { api: { lookup, renew: down } });
    const ensured = subject.ensure(never);
    await asked.promise;
    t.mock.timers.tick(2900);
    assert.equal(subject.state().storeUnreachable, undefined);
    t.mock.timers.tick(200);
    assert.match(subject.state().reason ?? "", /has not answered within 3 s/);
    answer.resolve(INFO);
    await ensured;
    assert.deepEqual([subject.state().authenticated, subject.state().storeUnreachable], [true, undefined]);
  });
});

describe("a token at hand", () => {
  it("is not looked up again until its file changes, it expires, or it is refused", async () => {
    await writeFile(tokenFile, "file", { mode: 0o600 });
    const { subject, asked } = signIn({}, { file: {}, second: { expiresAt: 1 } });
    await subject.ensure(never);
    await subject.ensure(never);
    assert.equal(asked.length, 1);
    subject.invalidate();
    assert.equal(subject.token(), undefined);
    await subject.ensure(never);
    assert.equal(asked.length, 2);
    await writeFile(tokenFile, "second");
    await subject.ensure(never);
    await subject.ensure(never);
    assert.deepEqual(asked.slice(2), ["second", "second"], "expired: looked for again each time");
  });

  it("ends with its file, also while the store cannot be asked", async () => {
    await writeFile(tokenFile, "file", { mode: 0o600 });
    let away = false;
    const lookup = (): Promise<TokenInfo> => (away ? down() : Promise.resolve(INFO));
    const { subject } = signIn({}, {}, { api: { lookup, renew: down } });
    let changes = 0;
    subject.onChange(() => (changes += 1));
    await subject.ensure(never);
    away = true;
    await writeFile(tokenFile, "another");
    await assert.rejects(subject.ensure(never), { code: "unavailable" });
    assert.equal(subject.token(), undefined);
    assert.equal(changes, 2);
    away = false;
    await subject.ensure(never);
    assert.equal(subject.token()?.reveal(), "another");
  });

  it("ends with its file, also when that was removed during the check of its login", async () => {
    const file = new TokenFile(tokenFile);
    const made: string[] = [];
    const automatic = async (): Promise<TokenOffer> => {
      const token = new Secret(`own-${made.push("")}`);
      return { token, kept: await file.write(token) };
    };
    const lookup = async (token: Secret): Promise<TokenInfo> => {
      if (token.reveal() === "own-1") await file.remove();
      return INFO;
    };
    const { subject } = signIn({}, {}, { automatic, api: { lookup, renew: down } });
    await subject.ensure(never);
    assert.equal(subject.token()?.reveal(), "own-1");
    for (let looks = 0; looks < 2; looks++) {
      await subject.ensure(never);
      assert.equal(subject.token()?.reveal(), "own-2");
    }
    assert.equal((await file.read())?.reveal(), "own-2");
  });

  it("a caller that gives up does not wait for another caller's look-up [agent 35.20]", async () => {
    const { promise: answer, resolve } = Promise.withResolvers<void>();
    await writeFile(tokenFile, "file\n", { mode: 0o600 });
    const { subject } = signIn(
      {},
      {},
      { api: { lookup: () => answer.then(() => INFO), renew: () => Promise.resolve() } },
    );
    const first = subject.ensure(never);
    await assert.rejects(subject.ensure(AbortSignal.timeout(20)), { code: "aborted" });
    await assert.rejects(subject.ensure(AbortSignal.abort()), { code: "aborted" });
    resolve();
    await first;
    assert.equal(subject.state().authenticated, true);
    await subject.ensure(never);
  });

  it("callers at the same time make one look", async () => {
    await writeFile(tokenFile, "file", { mode: 0o600 });
    const { subject, asked } = signIn({}, { file: {} });
    await Promise.all([subject.ensure(never), subject.ensure(never), subject.ensure(never)]);
    assert.deepEqual(asked, ["file"]);
  });
});

describe("the list of denied tokens", () => {
  it("a refused token is looked up again after 15 minutes, or when it is replaced [agent 10.21]", async () => {
    await writeFile(tokenFile, "bad", { mode: 0o600 });
    const valid: Record<string, Partial<TokenInfo>> = {};
    const { subject, asked, clock } = signIn({}, valid);
    const refused = (): Promise<void> => assert.rejects(subject.ensure(never), { code: "not_signed_in" });
    await refused();
    await refused();
    assert.deepEqual(asked, ["bad"]);
    clock.time += 15 * 60_000;
    await refused();
    assert.deepEqual(asked, ["bad", "bad"]);
    valid["good"] = {};
    await writeFile(tokenFile, "good");
    await subject.ensure(never);
    assert.equal(subject.state().authenticated, true);
  });
});

describe("renewIfDue", () => {
  const halfLife = { renewable: true, creationTtlSeconds: 100 };
  it("renews in the last quarter, and not before [agent 10.19]", async () => {
    await writeFile(tokenFile, "file", { mode: 0o600 });
    const valid = { file: { ...halfLife, expiresAt: 1_000_000 + 26_000 } };
    const { subject, renewed, clock } = signIn({}, valid);
    await subject.ensure(never);
    assert.equal(await subject.renewIfDue(0.25, never), "not due");
    clock.time += 2000;
    valid.file.expiresAt += 80_000;
    assert.equal(await subject.renewIfDue(0.25, never), "renewed");
    assert.deepEqual(renewed, ["file"]);
    assert.equal(subject.state().info?.expiresAt, valid.file.expiresAt);
  });

  it("reports a token that has reached its maximum life", async () => {
    await writeFile(tokenFile, "file", { mode: 0o600 });
    const { subject } = signIn({}, { file: { ...halfLife, expiresAt: 1_000_000 + 10_000 } });
    await subject.ensure(never);
    assert.equal(await subject.renewIfDue(0.25, never), "not possible");
  });

  it("leaves a borrowed token to its owner, and does nothing where renewal is disabled [agent 4.12]", async () => {
    const info = { ...halfLife, expiresAt: 1_000_000 + 10_000 };
    async function* borrow() {
      yield { token: new Secret("lent"), borrowedFrom: "/p" };
    }
    const borrowed = signIn({}, { lent: info }, { borrow });
    await borrowed.subject.ensure(never);
    assert.equal(await borrowed.subject.renewIfDue(0.25, never), "not possible");
    const disabled = signIn({ AGENT_TOKEN: "env" }, { env: info }, { renewal: false });
    await disabled.subject.ensure(never);
    assert.equal(await disabled.subject.renewIfDue(0.25, never), "not possible");
    assert.deepEqual([...borrowed.renewed, ...disabled.renewed], []);
  });
});

describe("the pinned identity", () => {
  it("another identity's token is refused from every source [agent 10.8]", async () => {
    await writeFile(tokenFile, "ada", { mode: 0o600 });
    const valid = { ada: { entityId: "e-1" }, bob: { entityId: "e-2" }, root: {} };
    await signIn({}, valid).subject.ensure(never);
    for (const token of ["bob", "root"]) {
      const { subject } = signIn({ AGENT_TOKEN: token }, valid);
      await subject.ensure(never);
      assert.equal(subject.token()?.reveal(), "ada");
    }
    await writeFile(tokenFile, "bob");
    await assert.rejects(signIn({}, valid).subject.ensure(never), /another identity.*login --switch/);
    assert.doesNotMatch(await readFile(join(folder, "identity.json"), "utf8"), /"(ada|bob)"/);
  });

  it("without an entity the display name decides [agent 10.8]", async () => {
    await writeFile(tokenFile, "one", { mode: 0o600 });
    const valid = {
      one: { displayName: "token-x" },
      two: { displayName: "token-x" },
      three: { displayName: "y" },
    };
    await signIn({}, valid).subject.ensure(never);
    await signIn({ AGENT_TOKEN: "two" }, valid).subject.ensure(never);
    await writeFile(tokenFile, "three");
    await assert.rejects(signIn({}, valid).subject.ensure(never), { code: "not_signed_in" });
  });

  it("a look that must leave nothing behind pins nothing", async () => {
    await writeFile(tokenFile, "ada", { mode: 0o600 });
    const { subject } = signIn({}, { ada: {} }, { pin: new IdentityPin(folder, false) });
    await subject.ensure(never);
    await assert.rejects(readFile(join(folder, "identity.json")), { code: "ENOENT" });
  });

  it("asks the peers for another token when a borrowed one is due, and keeps that", async () => {
    const END = 1_000_000 + 100_000;
    const life = { creationTtlSeconds: 100, expiresAt: END };
    const offers = ["first"];
    async function* borrow() {
      yield { refusal: new AgentError("token_not_lent", "waiting for consent on laptop") };
      for (const name of offers) yield { token: new Secret(name), borrowedFrom: "/p" };
    }
    const infos = { first: life, later: { ...life, expiresAt: END + 66_000 } };
    const { subject, clock, asked } = signIn({}, infos, { borrow });
    await subject.ensure(never);
    clock.time += 66_000;
    assert.equal(await subject.borrowIfDue(1 / 3, never), "not due");
    clock.time += 1000;
    assert.equal(await subject.borrowIfDue(1 / 3, never), "not possible", "the peer still has the first one");
    offers.splice(0, 1, "refused by the store");
    assert.equal(await subject.borrowIfDue(1 / 3, never), "not possible");
    assert.equal(subject.token()?.reveal(), "first");
    offers.push("later");
    assert.equal(await subject.borrowIfDue(1 / 3, never), "renewed");
    assert.deepEqual([subject.token()?.reveal(), subject.state().source], ["later", "peer"]);
    assert.equal(await subject.borrowIfDue(1 / 3, never), "not due");
    assert.equal(asked.filter((name) => name === "refused by the store").length, 1);
  });

  it("says what a peer responds where no token is found", async () => {
    async function* borrow() {
      yield { refusal: new AgentError("token_not_lent", "waiting for consent on laptop") };
    }
    const { subject } = signIn({}, {}, { borrow });
    await assert.rejects(subject.ensure(never), /not signed in.*: waiting for consent on laptop/);
    assert.equal(subject.state().reason, "waiting for consent on laptop");
  });

  it("takes a child token for the same user, whose name has Vault's prefix", async () => {
    const pin = new IdentityPin(folder, true);
    const token = new Secret("t");
    for (const [pinned, given] of [
      ["root", "token-root"],
      ["token-me", "me"],
      ["token-me", "token-me"],
    ] as const) {
      await pin.adopt(token, { ...INFO, displayName: pinned }, false);
      await pin.check({ ...INFO, displayName: given });
    }
    await assert.rejects(pin.check({ ...INFO, displayName: "token-other" }), /another identity/);
    await pin.adopt(token, { ...INFO, displayName: "userpass-ada", entityId: "e1" }, false);
    await pin.check({ ...INFO, displayName: "token-userpass-ada", entityId: "e1" });
    await assert.rejects(pin.check({ ...INFO, displayName: "userpass-ada" }), /another identity/);
    await assert.rejects(pin.check({ ...INFO, displayName: "userpass-ada", entityId: "e2" }), /another/);
  });
});

import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { silentLogger, systemClock, type Secret } from "@devplat/base";
import { SecretStoreError, type TokenInfo } from "@devplat/secret-store";
import { TokenSignIn } from "./sign-in.ts";

let folder = "";
let tokenFile = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "sign-in-"));
});
after(() => rm(folder, { recursive: true, force: true }));
beforeEach(async () => {
  tokenFile = join(folder, "token");
  await rm(tokenFile, { force: true });
});

const never = new AbortController().signal;
const INFO: TokenInfo = {
  entityId: undefined,
  displayName: "token",
  policies: [],
  ttlSeconds: undefined,
  creationTtlSeconds: 0,
  expiresAt: undefined,
  renewable: false,
};

function signIn(environment: NodeJS.ProcessEnv, valid: Record<string, Partial<TokenInfo>>) {
  const asked: string[] = [];
  const lookup = async (token: Secret): Promise<TokenInfo> => {
    asked.push(token.reveal());
    const info = valid[token.reveal()];
    if (info === undefined) throw new SecretStoreError("unauthenticated", "no");
    return { ...INFO, ...info };
  };
  const subject = new TokenSignIn({
    environment,
    tokenFile,
    lookup,
    clock: systemClock,
    logger: silentLogger,
  });
  return { subject, asked };
}

describe("token order", () => {
  it("AGENT_TOKEN, then the token file, each proven by the store", async () => {
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

  it("a token file that is wider than 0600 is not even read", async () => {
    await writeFile(tokenFile, "file", { mode: 0o600 });
    await chmod(tokenFile, 0o640);
    const { subject, asked } = signIn({}, { file: {} });
    await assert.rejects(subject.ensure(never), /others can read or write it/);
    assert.deepEqual(asked, []);
  });

  it("the store being away is no verdict on a token", async () => {
    await writeFile(tokenFile, "file", { mode: 0o600 });
    const lookup = () => Promise.reject(new SecretStoreError("unavailable", "down", { remedy: "retry" }));
    const subject = new TokenSignIn({
      environment: {},
      tokenFile,
      lookup,
      clock: systemClock,
      logger: silentLogger,
    });
    await assert.rejects(subject.ensure(never), { code: "unavailable" });
  });
});

describe("a token at hand", () => {
  it("is not asked about again until its file changes, it expires, or the store refuses it", async () => {
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
});

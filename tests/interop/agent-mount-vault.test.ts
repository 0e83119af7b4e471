import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startVault, until, type Vault } from "@devplat/testkit";
import { quick } from "./agent-mount-stand.ts";
import { VaultStand } from "./agent-mount/vault-stand.ts";

const TIMEOUT_MS = 480_000;
const READ_ALL = 'path "kv/*" { capabilities = ["read", "list"] }';
/** Seconds of a request to the slow store. */
const SLOW_S = 5;

describe("the mount over a Vault that fails", { timeout: TIMEOUT_MS, concurrency: true }, () => {
  let vault: Vault;
  before(async () => {
    vault = await startVault();
    await vault.request("PUT", "sys/policies/acl/reader", { policy: READ_ALL });
    // The first user also makes the way to sign in.
    await vault.createUserToken("first");
  });
  after(() => vault.stop());
  const stand = async (user: string, policies = ["reader"]): Promise<VaultStand> => {
    const made = await VaultStand.start(vault, user, policies);
    await made.put("demo/registry", { user: "ada", password: "first" });
    return made;
  };

  it("waits for a slow store, and then reads [agent 38.4]", async (context) => {
    const slow = await VaultStand.start(vault, "slow", ["reader"], { fuse: "cache_ttl: 1m" });
    context.after(() => slow.stop());
    for (const name of ["demo/registry", "other/key"]) await slow.put(name, { user: "ada" });
    await slow.untilError("", "demo/registry.json");
    slow.proxy.fault = { delayMs: SLOW_S * 1000 };
    const { error, seconds } = await slow.try("other/key.json");
    assert.equal(error, "");
    // The folder and the secret.
    assert.ok(seconds > 2 * SLOW_S - 1 && seconds < 25, `${seconds} s`);
  });

  it("shows what agent secrets put has stored, in a Vault that is polled", async (context) => {
    await vault.request("PUT", "sys/policies/acl/writer", {
      policy: 'path "kv/*" { capabilities = ["read", "list", "create", "update"] }',
    });
    const polled = await VaultStand.start(vault, "polled", ["writer"], {
      fuse: "cache_ttl: 10m",
      more: "api: { enabled: true }",
    });
    context.after(() => polled.stop());
    await polled.put("demo/registry", { password: "first" });
    await polled.untilError("", "demo/registry.json");
    const shown = (): Promise<string> => readFile(polled.at("demo/registry.json"), "utf8");
    assert.match(await shown(), /first/);
    await polled.put("demo/registry", { password: "unseen" });
    assert.match(await shown(), /first/);
    await polled.place.ok("secrets", "put", "demo/registry", "password=second");
    await until(async () => /second/.test(await shown()));
  });

  it("answers EACCES for a denied secret, and ENOENT for one that does not exist", async (context) => {
    await vault.request("PUT", "sys/policies/acl/no-values", {
      policy: 'path "kv/metadata/*" { capabilities = ["list"] }',
    });
    const denied = await stand("denied", ["no-values"]);
    context.after(() => denied.stop());
    // At its start the daemon is not signed in yet.
    await denied.untilError("", "demo");
    assert.equal((await quick("ls", denied.at("demo"))).stdout, "registry.json\n");
    assert.equal((await denied.try("demo/registry.json")).error, "EACCES");
    assert.equal((await denied.try("demo/absent.json")).error, "ENOENT");
    assert.equal((await denied.try("absent/registry.json")).error, "ENOENT");
    // The policy is changed, and the token stays.
    await vault.request("PUT", "sys/policies/acl/no-values", { policy: READ_ALL });
    await denied.untilError("", "demo/registry.json");
    await vault.request("PUT", "sys/policies/acl/no-values", {
      policy: 'path "kv/none" { capabilities = ["deny"] }',
    });
    await denied.untilError("EACCES", "demo/registry.json");
    await denied.untilError("EACCES", "demo");
    // Without the list nobody knows which names there are.
    await vault.request("PUT", "sys/policies/acl/no-values", {
      policy: 'path "kv/data/*" { capabilities = ["read"] }',
    });
    await sleep(1500);
    assert.equal((await denied.try("demo/registry.json")).error, "EACCES");
    assert.match(await denied.place.ok("status"), /Mounted: {4}yes/);
  });

  it("answers EACCES after the token has ended, until the next login", async (context) => {
    const lost = await stand("lost");
    context.after(() => lost.stop());
    await lost.untilError("", "demo/registry.json");
    const token = (await lost.place.read(".daemon-token")).trim();
    await vault.request("POST", "auth/token/revoke", { token });
    await lost.untilError("EACCES", "demo/registry.json");
    await until(
      async () => (await lost.place.agent(["status"])).stdout.includes("not signed in"),
      () => lost.agent.log(),
    );
    const life = async (seconds: number): Promise<void> => {
      const limits = { token_ttl: `${seconds}s`, token_max_ttl: `${seconds}s` };
      await vault.request("POST", "auth/userpass/users/lost", limits);
    };
    await life(4);
    await lost.signIn(["reader"]);
    await lost.untilError("", "demo/registry.json");
    await lost.untilError("EACCES", "demo/registry.json");
    await life(3600);
    await lost.signIn(["reader"]);
    await lost.untilError("", "demo/registry.json");
  });

  it("answers EIO after cache_ttl while Vault is stopped, and until it is unsealed", async (context) => {
    const sealed = await startVault({ storage: "disk" });
    context.after(() => sealed.stop());
    await sealed.request("PUT", "sys/policies/acl/reader", { policy: READ_ALL });
    const late = await VaultStand.start(sealed, "ada", ["reader"], { fuse: "cache_ttl: 4s" });
    context.after(() => late.stop());
    await late.put("demo/registry", { user: "ada" });
    await late.untilError("", "demo/registry.json");
    const start = performance.now();
    await sealed.pause();
    assert.equal(await readFile(late.at("demo/registry.json"), "utf8"), '{\n  "user": "ada"\n}\n');
    await late.untilError("EIO", "demo/registry.json");
    assert.ok(performance.now() - start < 20_000);
    assert.equal((await late.try("demo")).error, "EIO");
    await sealed.resume();
    assert.equal((await late.try("demo/registry.json")).error, "EIO");
    await until(
      async () => /sealed/.test((await late.place.agent(["status"])).stdout),
      () => late.agent.log(),
    );
    await sealed.unseal();
    await late.untilError("", "demo/registry.json");
    assert.doesNotMatch(late.agent.log(), /is started again/);
  });
});

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { startVault, type Vault } from "@devplat/testkit";
import type { SecretStore } from "../contract.ts";
import { SecretStoreError } from "../errors.ts";
import { parseFields } from "../json.ts";
import { userRoot } from "../paths.ts";
import { fieldsOf, assertRejectsWith, secretStoreSuite } from "../suite.ts";
import { VaultClient } from "./client.ts";
import { openVaultStore, type VaultStoreOptions } from "./vault-store.ts";

const root = userRoot({ mount: "kv", prefix: "users/", username: "ada" });

function open(
  vault: Vault,
  token: string | undefined,
  options: Partial<VaultStoreOptions> = {},
): SecretStore {
  return openVaultStore({
    address: vault.address,
    root,
    token: () => (token === undefined ? undefined : new Secret(token)),
    ...options,
  });
}

secretStoreSuite("vault", async () => {
  const vault = await startVault();
  return {
    open: async (username) =>
      open(vault, vault.rootToken, { root: userRoot({ mount: "kv", prefix: "users/", username }) }),
    stop: () => vault.stop(),
    numbers: "float64",
    halfSurrogates: false,
    events: false,
  };
});

describe("VaultStore [agent 11.1]", () => {
  let vault: Vault;
  let store: SecretStore;
  before(async () => {
    vault = await startVault();
    store = open(vault, vault.rootToken);
  });
  after(async () => {
    await store.close();
    await vault.stop();
  });

  it("a soft-deleted secret is not found, and its older versions can be read", async () => {
    await store.write("soft", fieldsOf({ v: "1" }));
    await store.write("soft", fieldsOf({ v: "2" }));
    await vault.request("DELETE", "kv/data/users/ada/soft");
    await assertRejectsWith("not_found", store.read("soft"));
    await assertRejectsWith("not_found", store.metadata("soft"));
    assert.deepEqual((await store.read("soft", { version: 1 })).fields, fieldsOf({ v: "1" }));
  });

  it("of two writers, one can create a soft-deleted secret again", async () => {
    await store.write("again", fieldsOf({ v: "1" }));
    await vault.request("DELETE", "kv/data/users/ada/again");
    const results = await Promise.allSettled(
      ["a", "b"].map((v) => store.write("again", fieldsOf({ v }), { ifVersion: 0 })),
    );
    assert.deepEqual(results.map(({ status }) => status).toSorted(), ["fulfilled", "rejected"]);
    assert.equal((await store.read("again")).version, 2);
  });

  it("deleting a soft-deleted secret removes its remaining versions", async () => {
    await store.write("rest", fieldsOf({ v: "1" }));
    await vault.request("DELETE", "kv/data/users/ada/rest");
    await store.delete("rest");
    assert.equal((await vault.request("GET", "kv/metadata/users/ada/rest")).status, 404);
  });

  it("a destroyed version is not found and is missing in the metadata", async () => {
    await store.write("shred", fieldsOf({ v: "1" }));
    await store.write("shred", fieldsOf({ v: "2" }));
    await vault.request("PUT", "kv/destroy/users/ada/shred", { versions: [1] });
    await assertRejectsWith("not_found", store.read("shred", { version: 1 }));
    assert.deepEqual(
      (await store.metadata("shred")).versions.map(({ version }) => version),
      [2],
    );
  });

  it("a version with a future deletion time can be read", async () => {
    await vault.request("POST", "kv/metadata/users/ada/timed", { delete_version_after: "1h" });
    await assertRejectsWith("not_found", store.metadata("timed"));
    await store.write("timed", fieldsOf({ v: "1" }), { ifVersion: 0 });
    assert.equal((await store.metadata("timed")).versions.length, 1);
  });

  it("a mount with required compare-and-set refuses a write without it as a conflict", async () => {
    await vault.request("POST", "kv/metadata/users/ada/strict", { cas_required: true });
    await assertRejectsWith("version_conflict", store.write("strict", fieldsOf({ v: "1" })));
    await store.write("strict", fieldsOf({ v: "1" }), { ifVersion: 0 });
  });

  it("a request that the token's policies forbid is denied [agent 11.2]", async () => {
    const policy = 'path "kv/data/users/ada/open" { capabilities = ["read"] }';
    await vault.request("PUT", "sys/policies/acl/narrow", { policy });
    const narrow = open(vault, await vault.createUserToken("ada", ["narrow"]));
    await store.write("open", fieldsOf({ v: "1" }));
    assert.equal((await narrow.read("open")).version, 1);
    await narrow.ping();
    await assertRejectsWith("denied", narrow.write("open", fieldsOf({ v: "2" })));
    await assertRejectsWith("denied", narrow.read("closed"));
    await assertRejectsWith("denied", narrow.list(""));
    await assertRejectsWith("denied", narrow.delete("open"));
    await narrow.close();
  });

  it("a missing and an unknown token are unauthenticated", async () => {
    for (const token of [undefined, "", "hvs.not-a-token", "line\nbreak"]) {
      const unknown = open(vault, token);
      await assertRejectsWith("unauthenticated", unknown.read("first"));
      await assertRejectsWith("unauthenticated", unknown.ping());
      await unknown.close();
    }
  });

  it("ping fails for a mount that does not exist", async () => {
    await store.ping();
    const elsewhere = open(vault, vault.rootToken, {
      root: userRoot({ mount: "nowhere", prefix: "", username: "ada" }),
    });
    await assertRejectsWith("misconfigured", elsewhere.ping());
    await assertRejectsWith("misconfigured", elsewhere.list(""));
    await assertRejectsWith("misconfigured", elsewhere.read("a"));
    await elsewhere.close();
  });

  it("a key-value mount of version 1 is misconfigured", async () => {
    await vault.request("POST", "sys/mounts/old", { type: "kv", options: { version: "1" } });
    const old = open(vault, vault.rootToken, {
      root: userRoot({ mount: "old", prefix: "", username: "ada" }),
    });
    await assertRejectsWith("misconfigured", old.ping());
    await old.close();
  });

  const item = (count: number): string => Array.from({ length: count }, () => "1").join(",");
  for (const [limit, value, hint] of [
    ["entries", `{${Array.from({ length: 10_001 }, (_, at) => `"k${at}":1`).join(",")}}`, /too many entries/],
    ["items", `[${item(11_000)}]`, /too many items/],
    ["nesting", `${"[".repeat(299)}${"]".repeat(299)}`, /nested too deep/],
    ["values", `[${Array.from({ length: 50 }, () => `[${item(6_000)}]`).join(",")}]`, /too many values/],
  ] as const) {
    it(`a document over Vault's limit of ${limit} is too large, and stores nothing`, async () => {
      const asked = performance.now();
      await assert.rejects(store.write("much", parseFields(`{"a":${value}}`)), (error: unknown) => {
        assert.ok(error instanceof SecretStoreError);
        assert.deepEqual([error.code, error.remedy], ["too_large", "final"], error.message);
        assert.match(error.message, /^cannot write "much": /);
        assert.match(error.hint ?? "", hint);
        return true;
      });
      assert.ok(performance.now() - asked < 5_000);
      await assertRejectsWith("not_found", store.read("much"));
    });
  }

  it("a sealed store is sealed, and works after unsealing [agent 11.2]", async () => {
    await store.write("sealed", fieldsOf({ v: "1" }));
    await vault.seal();
    await assert.rejects(store.read("sealed"), (error: unknown) => {
      assert.ok(error instanceof SecretStoreError);
      assert.deepEqual([error.code, error.remedy], ["sealed", "retry"]);
      return true;
    });
    await vault.unseal();
    assert.equal((await store.read("sealed")).version, 1);
  });

  it("a stopped server is unavailable, and works after its start [agent 11.2]", async () => {
    const timing = { firstMs: 1, maxMs: 5 };
    const patient = open(vault, vault.rootToken, { timing });
    await patient.ping();
    await vault.pause();
    await assertRejectsWith("unavailable", patient.read("first"));
    await vault.resume();
    await patient.ping();
    await patient.close();
  });
});

describe("VaultClient", () => {
  let vault: Vault;
  before(async () => {
    vault = await startVault();
  });
  after(() => vault.stop());

  it("lookupSelf reads a token, renewSelf renews it, revokeSelf ends it", async () => {
    const token = new Secret(await vault.createUserToken("ada"));
    const client = new VaultClient({ address: vault.address, token: () => token });
    const info = await client.lookupSelf();
    assert.match(info.displayName, /ada/);
    assert.ok(info.entityId !== undefined && info.renewable);
    assert.ok(
      info.ttlSeconds !== undefined && info.ttlSeconds > 0 && info.ttlSeconds <= info.creationTtlSeconds,
    );
    assert.ok(Math.abs((info.expiresAt ?? 0) - (Date.now() + info.ttlSeconds * 1000)) < 10_000);
    assert.ok((await client.renewSelf()).ttlSeconds > 0);
    await client.revokeSelf();
    await assertRejectsWith("unauthenticated", client.lookupSelf());
    await client.revokeSelf();
    await client.close();
  });

  it("lookupSelf of a root token has no end", async () => {
    const client = new VaultClient({ address: vault.address, token: () => new Secret(vault.rootToken) });
    const { ttlSeconds, expiresAt, renewable, policies } = await client.lookupSelf();
    assert.deepEqual([ttlSeconds, expiresAt, renewable, policies], [undefined, undefined, false, ["root"]]);
    await client.close();
  });

  it("a given token is used instead of the client's own", async () => {
    const client = new VaultClient({ address: vault.address, token: () => undefined });
    assert.deepEqual((await client.lookupSelf({ token: new Secret(vault.rootToken) })).policies, ["root"]);
    await client.close();
  });
});

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { startVault, tempFolder, type TempFolder, type Vault } from "@devplat/testkit";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { credential } from "../../apps/svc/src/storage/contract/records.ts";
import { storeContract } from "../../apps/svc/src/storage/contract/suite.ts";
import { openDatabase, openStore, type DatabaseSettings } from "../../apps/svc/src/storage/open-store.ts";
import type { VaultAuth } from "../../apps/svc/src/storage/vault/login.ts";

let vault: Vault;
let folder: TempFolder;
let prefixes = 0;
before(async () => {
  vault = await startVault();
  folder = await tempFolder("svc-vault");
  await vault.request("POST", "sys/auth/approle", { type: "approle" });
  await vault.request("PUT", "sys/policies/acl/svc", { policy: POLICY });
});
after(async () => {
  await vault.stop();
  await folder.remove();
});

/** Policy that docs/svc/databases.md tells administrators to grant. */
const POLICY = ["data", "metadata"]
  .map((part) => `path "kv/${part}/*" { capabilities = ["create", "read", "update", "delete", "list"] }`)
  .join("\n");

const noKeys = async (): Promise<never> => assert.fail("Vault needs no encryption key of ours");

function settings(change: { prefix?: string; auth?: VaultAuth; dsn?: string } = {}): DatabaseSettings {
  return {
    driver: "vault",
    dsn: new Secret(change.dsn ?? vault.address),
    dataDir: "unused",
    maxConnections: 1,
    vault: {
      namespace: undefined,
      mount: "kv",
      prefix: change.prefix ?? `svc/${++prefixes}`,
      auth: change.auth ?? { method: "token", token: new Secret(vault.rootToken) },
      caFile: undefined,
    },
  };
}

storeContract("vault", async () => openStore(settings(), noKeys, true));

describe("vault store", () => {
  const appRole = async (tokenTtl: string): Promise<VaultAuth> => {
    await vault.request("POST", "auth/approle/role/svc", {
      token_policies: ["svc"],
      token_ttl: tokenTtl,
      token_max_ttl: tokenTtl,
    });
    const role = await vault.request("GET", "auth/approle/role/svc/role-id");
    const secret = await vault.request("POST", "auth/approle/role/svc/secret-id");
    return {
      method: "approle",
      mount: "approle",
      roleId: String((role.body["data"] as Record<string, unknown>)["role_id"]),
      secretId: new Secret(String((secret.body["data"] as Record<string, unknown>)["secret_id"])),
    };
  };

  it("database behind: an empty folder refuses the start, and migrate makes it current", async () => {
    const here = settings();
    await assert.rejects(openStore(here, noKeys, false), { code: "database_behind", hint: /svc migrate/ });
    const database = await openDatabase(here);
    const { pending } = await database.state();
    assert.deepEqual(await database.migrate(), pending);
    assert.deepEqual(await database.migrate(), []);
    assert.deepEqual((await database.state()).pending, []);
    await database.close();
  });

  it("database ahead: one with an unknown migration is refused, with its name", async () => {
    const here = settings();
    await (await openStore(here, noKeys, true)).close();
    const applied = JSON.stringify({ applied: ["0001_initial", "9999_later"] });
    await vault.put(`${here.vault.prefix}/form`, { json: applied });
    await assert.rejects(openStore(here, noKeys, true), { code: "database_ahead", message: /9999_later/ });
  });

  it("instances that start concurrently migrate once", async () => {
    const here = settings();
    const databases = await Promise.all([1, 2, 3].map(async () => openDatabase(here)));
    const applied = await Promise.all(databases.map(async (each) => each.migrate()));
    assert.equal(applied.filter((names) => names.length > 0).length, 1);
    for (const each of databases) await each.close();
  });

  it("AppRole: the documented policy is enough, and an expired token is replaced", async () => {
    // As long as a loaded machine takes for what comes before its end.
    const auth = await appRole("5s");
    const store = await openStore(settings({ auth }), noKeys, true);
    const user = await store.users.ensure("alice", "01a1fdbd-b598-7000-8000-000000000001", 1);
    await store.users.putCredential(user.id, credential("ghp_1"), 1);
    const deadline = performance.now() + 60_000;
    const firstEnds = performance.now() + 5500;
    let lastError: unknown;
    // Past the first token's life: asked again until the login that follows it has come.
    for (;;) {
      try {
        await store.ping();
        if (performance.now() > firstEnds) break;
      } catch (error) {
        lastError = error;
      }
      if (performance.now() > deadline) throw lastError;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    assert.equal((await store.users.credential(user.id))?.accessToken.reveal(), "ghp_1");
    await store.close();
  });

  it("another engine than KV version 2 is refused, and nothing is written to it", async () => {
    await vault.request("POST", "sys/mounts/old", { type: "kv", options: { version: "1" } });
    await vault.request("POST", "sys/mounts/unversioned", { type: "kv" });
    await vault.request("POST", "sys/mounts/ssh", { type: "ssh" });
    const auth: VaultAuth = { method: "token", token: new Secret(vault.rootToken) };
    for (const [mount, engine] of [
      ["old", /"old".*a KV engine of version 1/],
      ["unversioned", /"unversioned".*a KV engine of version 1/],
      ["ssh", /"ssh".*an engine of type ssh/],
    ] as const) {
      const here = settings({ auth });
      const other = { ...here, vault: { ...here.vault, mount } };
      await assert.rejects(openDatabase(other), {
        code: "config_refused",
        message: engine,
        hint: /-version=2 kv/,
      });
      assert.equal((await vault.request("LIST", mount)).status >= 400, true, "nothing was written");
    }
  });

  it("a refused login, a sealed Vault and a wrong mount differ, without secrets", async () => {
    const wrong: VaultAuth = {
      method: "approle",
      mount: "approle",
      roleId: "planted-role",
      secretId: new Secret("planted-secret"),
    };
    const jwtFile = join(folder.path, "jwt");
    await writeFile(jwtFile, "planted-jwt");
    const cases: [DatabaseSettings, string, RegExp][] = [
      [settings({ auth: wrong }), "database_unavailable", /auth\/approle\/login/],
      [
        settings({ auth: { method: "token", token: new Secret("planted-token") } }),
        "database_unavailable",
        /does not accept the token/,
      ],
      [
        settings({ auth: { method: "kubernetes", mount: "kubernetes", role: "svc", jwtFile } }),
        "database_unavailable",
        /auth\/kubernetes\/login/,
      ],
      [
        settings({ auth: { method: "kubernetes", mount: "kubernetes", role: "svc", jwtFile: "/none" } }),
        "config_refused",
        /jwt_file.*ENOENT/,
      ],
      [
        settings({ dsn: "https://user:planted-password@vault.example" }),
        "config_refused",
        /SVC_DATABASE_DSN/,
      ],
      [settings({ dsn: "http://127.0.0.1:1" }), "database_unavailable", /ECONNREFUSED/],
    ];
    for (const [here, code, message] of cases) {
      await assert.rejects(openStore(here, noKeys, true), (error: Error & { code: string }) => {
        assert.equal(error.code, code);
        assert.match(error.message, message);
        assert.doesNotMatch(`${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`, /planted/);
        return true;
      });
    }
    const store = await openStore(settings(), noKeys, true);
    await vault.seal();
    await assert.rejects(store.ping(), { code: "database_unavailable", message: /sealed/ });
    await vault.unseal();
    await store.ping();
    await store.close();
  });

  it("rekey finds nothing to do, because no secret here is under a svc key", async () => {
    const store = await openStore(settings(), noKeys, true);
    assert.equal(await store.rekey(() => assert.fail("no progress without work")), 0);
    await store.close();
  });
});

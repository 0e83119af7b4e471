import assert from "node:assert/strict";
import { resolve } from "node:path";
import { describe, it } from "node:test";
import { configSchema } from "../config/schema.ts";
import { databaseSettings, encryptionKeySource } from "./database-settings.ts";
import { openDatabase } from "./open-store.ts";

const settings = (change: object): ReturnType<typeof databaseSettings> =>
  databaseSettings(configSchema.parse({ data_dir: "d", ...change }));

describe("databaseSettings", () => {
  it("asks of vault what its method of logging in needs, and names key and variable", () => {
    const database = { driver: "vault", dsn: "https://vault.example:8200" };
    const missing: [object, RegExp][] = [
      [{}, /vault\.token \(SVC_VAULT_TOKEN\)/],
      [{ auth_method: "approle" }, /vault\.role_id \(SVC_VAULT_ROLE_ID\)/],
      [{ auth_method: "approle", role_id: "r" }, /vault\.secret_id \(SVC_VAULT_SECRET_ID\)/],
      [{ auth_method: "kubernetes" }, /vault\.role \(SVC_VAULT_ROLE\)/],
    ];
    for (const [vault, message] of missing) {
      assert.throws(() => settings({ database, vault }), { code: "config_refused", message });
    }
  });

  it("reads each method, mounted under its own name by default", () => {
    const auth = (vault: object): unknown => settings({ database: { driver: "vault" }, vault }).vault.auth;
    assert.deepEqual(auth({ auth_method: "kubernetes", role: "svc" }), {
      method: "kubernetes",
      mount: "kubernetes",
      role: "svc",
      jwtFile: "/var/run/secrets/kubernetes.io/serviceaccount/token",
    });
    const role = auth({ auth_method: "approle", auth_mount: "ci", role_id: "r", secret_id: "s" });
    assert.equal((role as { mount: string }).mount, "ci");
  });

  it("a server without an address is refused with the key that names it", async () => {
    const vault = { token: "t" };
    for (const driver of ["postgres", "vault"]) {
      await assert.rejects(openDatabase(settings({ database: { driver }, vault })), {
        code: "config_refused",
        message: /database\.dsn \(SVC_DATABASE_DSN\) is not set/,
      });
    }
  });
});

describe("encryptionKeySource", () => {
  it("has the keys, and where development mode keeps its own", () => {
    const encryption = { key: "0a".repeat(32), key_previous: "0b".repeat(32) };
    const {
      key,
      key_previous: previous,
      ...source
    } = encryptionKeySource(configSchema.parse({ data_dir: "d", dev: { mode: true }, encryption }));
    assert.deepEqual([key?.reveal(), previous?.reveal()], Object.values(encryption));
    assert.deepEqual(source, { developmentMode: true, dataDir: resolve("d") });
  });
});

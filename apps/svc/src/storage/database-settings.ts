import { resolve } from "node:path";
import type { Config } from "../config/schema.ts";
import { SvcError } from "../errors.ts";
import type { EncryptionKeySource } from "./encryption-key.ts";
import type { DatabaseSettings } from "./open-store.ts";
import type { VaultAuth } from "./vault/login.ts";

/**
 * The part of the configuration that says where the database is.
 *
 * @throws SvcError `config_refused`: the way to log in at Vault is not whole
 */
export function databaseSettings({ database, vault, data_dir }: Config): DatabaseSettings {
  return {
    driver: database.driver,
    dsn: database.dsn,
    dataDir: resolve(data_dir),
    maxConnections: database.max_connections,
    vault: {
      namespace: vault.namespace,
      mount: vault.mount,
      prefix: vault.prefix,
      auth: database.driver === "vault" ? vaultAuth(vault) : { method: "token", token: undefined },
      caFile: vault.ca_file,
    },
  };
}

/** The part of the configuration that says where the keys of stored secrets are. */
export function encryptionKeySource({ encryption, dev, data_dir }: Config): EncryptionKeySource {
  return { ...encryption, developmentMode: dev.mode, dataDir: resolve(data_dir) };
}

function vaultAuth(vault: Config["vault"]): VaultAuth {
  const needed = <T>(key: string, value: T | undefined): T => {
    if (value !== undefined) return value;
    throw new SvcError(
      "config_refused",
      `vault.${key} (SVC_VAULT_${key.toUpperCase()}) is not set, and vault.auth_method ${vault.auth_method} needs it`,
    );
  };
  const mount = vault.auth_mount ?? vault.auth_method;
  switch (vault.auth_method) {
    case "approle":
      return {
        method: "approle",
        mount,
        roleId: needed("role_id", vault.role_id),
        secretId: needed("secret_id", vault.secret_id),
      };
    case "kubernetes":
      return { method: "kubernetes", mount, role: needed("role", vault.role), jwtFile: vault.jwt_file };
    default:
      return { method: "token", token: needed("token", vault.token) };
  }
}

import { readFile } from "node:fs/promises";
import { systemClock, systemCode, type Secret } from "@devplat/base";
import { SecretStoreError, VaultClient } from "@devplat/secret-store";
import { SvcError } from "../../errors.ts";
import type { Database } from "../database.ts";
import { refuseAhead, type MigrationState } from "../migration-state.ts";
import { RestoreFence } from "../restore-fence.ts";
import { SecretBox } from "../secret-box.ts";
import type { Store } from "../store.ts";
import { vaultInstances } from "./coordination/instances.ts";
import { FencedKv } from "./fenced-kv.ts";
import { appliedMigrations, FORM, MIGRATIONS, refuseUnfinishedRestore, type FormDocument } from "./form.ts";
import { VaultKv } from "./kv.ts";
import { VaultLogin, type VaultAuth } from "./login.ts";
import { vaultStore } from "./vault-store.ts";

export interface VaultSettings {
  /** `https://host:port`. */
  readonly address: Secret | undefined;
  readonly namespace: string | undefined;
  /** Mount of a KV version 2 engine. */
  readonly mount: string;
  /** Folder for all that is ours. */
  readonly prefix: string;
  readonly auth: VaultAuth;
  /** PEM file of the authorities to trust, instead of the system's. */
  readonly caFile: string | undefined;
}

/** @throws SvcError `config_refused`, `database_unavailable` */
export async function openVault(settings: VaultSettings): Promise<Database> {
  const login = new VaultLogin(settings.auth, systemClock);
  const client = await clientFor(settings, login);
  const ended = new AbortController();
  let keeping: Promise<void> = Promise.resolve();
  const kv = new VaultKv(client, settings);
  const close = async (): Promise<void> => {
    ended.abort();
    await keeping;
    await client.close();
  };
  try {
    await login.begin(client);
    await refuseOtherEngine(client, settings.mount);
    await kv.read(FORM);
  } catch (error) {
    await close();
    throw error;
  }
  keeping = login.run(client, ended.signal);
  const fence = new RestoreFence();
  const instances = fence.instances(vaultInstances(kv));
  return vaultDatabase(kv, () => vaultStore(new FencedKv(client, settings, fence), instances, close), close);
}

function vaultDatabase(kv: VaultKv, store: () => Store, close: () => Promise<void>): Database {
  const state = async (): Promise<MigrationState> => {
    const applied = await appliedMigrations(kv);
    refuseUnfinishedRestore(applied);
    return {
      applied: MIGRATIONS.filter((name) => applied.includes(name)),
      pending: MIGRATIONS.filter((name) => !applied.includes(name)),
      unknown: applied.filter((name) => !MIGRATIONS.some((known) => known === name)),
    };
  };
  return {
    state,

    async migrate() {
      refuseAhead(await state());
      let added: readonly string[] = [];
      await kv.change<FormDocument>(FORM, (form) => {
        const applied = form?.applied ?? [];
        added = MIGRATIONS.filter((name) => !applied.includes(name));
        return added.length === 0 ? undefined : { applied: [...applied, ...added] };
      });
      return added;
    },

    encryptsSecrets: true,
    // The start does not load the code of backups.
    readContent: async (use, { current, previous }) => {
      const { readVaultContent } = await import("./content/read-content.ts");
      return readVaultContent(kv, new SecretBox(current, previous), use);
    },
    refuseReplacement: async (replace) => {
      const { refuseVaultReplacement } = await import("./content/replace-content.ts");
      await refuseVaultReplacement(kv, replace);
    },
    replaceContent: async (content, { current, previous }) => {
      const { replaceVaultContent } = await import("./content/replace-content.ts");
      return replaceVaultContent(kv, content, new SecretBox(current, previous));
    },
    store: () => Promise.resolve(store()),
    close,
  };
}

/**
 * A KV engine of version 1 would take writes, and not as documents. A mount that Vault does not show to this token is found by the
 * first read.
 *
 * @throws SvcError `config_refused`
 */
async function refuseOtherEngine(client: VaultClient, mount: string): Promise<void> {
  const engine = await engineOf(client, mount);
  if (engine === undefined) return;
  throw new SvcError(
    "config_refused",
    `Cannot use the mount "${mount}" in Vault (vault.mount, SVC_VAULT_MOUNT): it is ${engine}`,
    { hint: "Name a mount of a KV version 2 engine: vault secrets enable -path=NAME -version=2 kv" },
  );
}

/** @returns undefined: it is a KV engine of version 2, or Vault does not say it */
async function engineOf(client: VaultClient, mount: string): Promise<string | undefined> {
  try {
    const path = `sys/internal/ui/mounts/${mount}`;
    const data = (await client.request({ method: "GET", path })).get("data");
    const type = data.get("type").string();
    if (type !== "kv") return `an engine of type ${type}`;
    return data.get("options").get("version").value === "2" ? undefined : "a KV engine of version 1";
  } catch (error) {
    if (error instanceof SecretStoreError) return undefined;
    throw error;
  }
}

async function clientFor(settings: VaultSettings, login: VaultLogin): Promise<VaultClient> {
  const { address, namespace, caFile } = settings;
  if (address === undefined) {
    throw new SvcError("config_refused", "database.dsn (SVC_DATABASE_DSN) is not set", {
      hint: "With database.driver vault, it is Vault's address: https://vault.example.com:8200",
    });
  }
  try {
    return new VaultClient({
      address: address.reveal(),
      token: () => login.token,
      ...(namespace === undefined ? {} : { namespace }),
      ...(caFile === undefined ? {} : { caCert: await authorities(caFile) }),
    });
  } catch (error) {
    if (!(error instanceof SecretStoreError)) throw error;
    throw new SvcError("config_refused", "database.dsn (SVC_DATABASE_DSN) is not an address of Vault", {
      hint: "Write it like https://vault.example.com:8200, without user name, password and query.",
    });
  }
}

async function authorities(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new SvcError(
      "config_refused",
      `vault.ca_file: "${path}" cannot be read (${systemCode(error) ?? "unknown fault"})`,
    );
  }
}

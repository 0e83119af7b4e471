import assert from "node:assert/strict";
import { mkdtemp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { tempFolder, type TempFolder } from "@devplat/testkit";
import { generateX25519Identity, identityToRecipient } from "age-encryption";
import { Secret } from "@devplat/base";
import { sql } from "kysely";
import { configSchema, type Config } from "../config/schema.ts";
import { DATABASE_FILE } from "../storage/open-store.ts";
import { migrateTo, migrationState } from "../storage/sql/migrations.ts";
import { openSqlite, sqliteSpecifics } from "../storage/sqlite/open.ts";
import { SecretBox } from "../storage/secret-box.ts";
import { sqlStore } from "../storage/sql/sql-store.ts";
import { backupOf, filledDatabase, KEY, streamOf } from "./backup.test-kit.ts";
import { restoreDatabase, type RestoreChoices } from "./restore-database.ts";
import { StagedBackup } from "./staged-backup.ts";

const STRICT: RestoreChoices = {
  replace: false,
  keepSessions: false,
  keepTokens: false,
  keepCache: false,
  otherHost: false,
};
/** A table with content at the third migration, and one of running instances at the fourth. */
const user = () => sql`INSERT INTO users (id, login, login_key, created_at) VALUES ('u1', 'Bob', 'bob', 7)`;
const instance = () => sql`INSERT INTO instances (id, host_name, version, ready, started_at, reported_at)
  VALUES ('i', 'box', '1', 1, 1, ${Date.now()})`;

let folder: TempFolder;
let staged: StagedBackup;
/** Reads a new backup. @param withKey whether it has the encryption key */
let readBackup: (withKey: boolean) => Promise<StagedBackup>;
before(async () => {
  folder = await tempFolder("restore-database");
  const identity = await generateX25519Identity();
  const unlocking = { kind: "identities", identities: [new Secret(identity)] } as const;
  readBackup = async (withKey) => {
    const db = await filledDatabase();
    const recipients = [await identityToRecipient(identity)];
    const key = withKey ? { current: KEY, previous: null } : null;
    const bytes = await backupOf(db, { kind: "recipients", recipients }, key);
    await db.destroy();
    return StagedBackup.read(streamOf(bytes), unlocking, () => undefined);
  };
  staged = await readBackup(true);
});
after(async () => {
  await staged?.close();
  await folder?.remove();
});

/** Configuration of development mode without a key, with an empty data folder. */
async function developmentConfig(): Promise<Config> {
  const dataDir = await mkdtemp(join(folder.path, "data-"));
  return configSchema.parse({ data_dir: dataDir, dev: { mode: true } });
}

describe("a restore that is refused", () => {
  for (const { name, last, content, code, choices } of [
    {
      name: "because of content",
      last: "0003_tokens_minted_by",
      content: user,
      code: "database_not_empty",
      choices: STRICT,
    },
    {
      name: "because of a running instance",
      last: "0004_coordination_additive",
      content: instance,
      code: "database_in_use",
      choices: { ...STRICT, replace: true },
    },
  ]) {
    it(`${name} neither migrates the database nor writes a key`, async () => {
      const config = await developmentConfig();
      const path = join(config.data_dir, DATABASE_FILE);
      const target = await openSqlite(path);
      await migrateTo(target, last);
      await content().execute(target);
      const former = await migrationState(target);
      await assert.rejects(restoreDatabase(staged, config, choices), { code });
      assert.deepEqual(await migrationState(target), former);
      assert.equal((await readdir(config.data_dir)).includes("encryption.key"), false);
      await target.destroy();
    });
  }

  it("is not one of an earlier version without content", async () => {
    const config = await developmentConfig();
    const target = await openSqlite(join(config.data_dir, DATABASE_FILE));
    await migrateTo(target, "0001_initial");
    await target.destroy();
    const { keyFile } = await restoreDatabase(staged, config, STRICT);
    assert.equal(keyFile, join(config.data_dir, "encryption.key"));
  });
});

describe("a restore with a new key and the previous one", () => {
  const key = "1b".repeat(32);
  for (const withKey of [true, false]) {
    it(`encrypts all secrets for the new key ${withKey ? "with" : "without"} a key in it`, async () => {
      const dataDir = await mkdtemp(join(folder.path, "data-"));
      const encryption = { key, key_previous: KEY };
      const config = configSchema.parse({ data_dir: dataDir, encryption });
      const read = await readBackup(withKey);
      await restoreDatabase(read, config, STRICT);
      await read.close();
      const db = await openSqlite(join(dataDir, DATABASE_FILE));
      const box = new SecretBox(new Secret(key));
      const [account] = await db.selectFrom("users").selectAll().execute();
      const [app] = await db.selectFrom("apps").selectAll().execute();
      for (const sealed of [account?.credential, app?.private_key, app?.webhook_secret]) {
        assert.equal(box.isCurrent(String(sealed)), true, String(sealed).slice(0, 11));
      }
      const store = sqlStore({ db, box, specifics: sqliteSpecifics });
      const credential = await store.users.credential(String(account?.id));
      assert.equal(credential?.accessToken.reveal(), "planted-credential");
      assert.equal((await store.apps.list())[0]?.webhookSecret?.reveal(), "planted-webhook-secret");
      await store.close();
    });
  }
});

it("a backup of another code host is refused with both names, unless --other-host", async () => {
  const dataDir = await mkdtemp(join(folder.path, "data-"));
  const host = { url: "https://git.example.com" };
  const config = configSchema.parse({ data_dir: dataDir, encryption: { key: KEY }, host });
  await assert.rejects(restoreDatabase(staged, config, STRICT), {
    code: "backup_refused",
    message: /https:\/\/github\.com, but the configuration has https:\/\/git\.example\.com/,
    hint: /--other-host/,
  });
  assert.deepEqual(await readdir(dataDir), []);
  const { validTokens } = await restoreDatabase(staged, config, { ...STRICT, otherHost: true });
  assert.equal(validTokens, 0);
});

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
import { openSqlite } from "../storage/sqlite/open.ts";
import { backupOf, filledDatabase, streamOf } from "./backup.test-kit.ts";
import { restoreDatabase, type RestoreChoices } from "./restore-database.ts";
import { StagedBackup } from "./staged-backup.ts";

const STRICT: RestoreChoices = { replace: false, keepSessions: false, keepTokens: false, keepCache: false };
/** A table with content at the third migration, and one of running instances at the fourth. */
const user = () => sql`INSERT INTO users (id, login, login_key, created_at) VALUES ('u1', 'Bob', 'bob', 7)`;
const instance = () => sql`INSERT INTO instances (id, host_name, version, ready, started_at, reported_at)
  VALUES ('i', 'box', '1', 1, 1, ${Date.now()})`;

let folder: TempFolder;
let staged: StagedBackup;
before(async () => {
  folder = await tempFolder("restore-database");
  const identity = await generateX25519Identity();
  const db = await filledDatabase();
  const bytes = await backupOf(db, {
    kind: "recipients",
    recipients: [await identityToRecipient(identity)],
  });
  await db.destroy();
  const unlocking = { kind: "identities", identities: [new Secret(identity)] } as const;
  staged = await StagedBackup.read(streamOf(bytes), unlocking, () => undefined);
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

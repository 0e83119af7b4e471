import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { startVault, type Vault } from "@devplat/testkit";
import { filledDatabase, KEY, rowsOf as rowsOfSql } from "../../../backup/backup.test-kit.ts";
import type { TableRows } from "../../database-content.ts";
import type { Database, EncryptionKeys } from "../../database.ts";
import type { Store } from "../../store.ts";
import { SecretBox } from "../../secret-box.ts";
import { MIGRATION_NAMES } from "../../sql/migrations.ts";
import { tableRows } from "../../sql/content.ts";
import { openVault } from "../vault-database.ts";

const KEYS: EncryptionKeys = { current: new Secret(KEY), previous: undefined };
/** Columns with secrets. Each encryption gives another text. */
const SECRETS: readonly (readonly [table: string, column: string, place: string])[] = [
  ["users", "credential", "users/ID"],
  ["apps", "private_key", "apps/ID/private_key"],
  ["apps", "webhook_secret", "apps/ID/webhook_secret"],
];
const REPOSITORY = {
  enabled: true,
  timeoutSeconds: undefined,
  maxCacheSizeMb: undefined,
  seed: undefined,
  bundles: undefined,
  createdAt: 1,
  updatedAt: 1,
  version: 1,
};

let vault: Vault;
before(async () => (vault = await startVault()));
after(async () => vault?.stop());

async function openAt(prefix: string): Promise<Database> {
  return openVault({
    address: new Secret(vault.address),
    namespace: undefined,
    mount: "kv",
    prefix,
    auth: { method: "token", token: new Secret(vault.rootToken) },
    caFile: undefined,
  });
}

/** Rows in the order of their ids, with secrets as plain text, and without the time that Vault does not have. */
function comparable(rows: Readonly<Record<string, readonly unknown[]>>): Record<string, unknown[]> {
  const box = new SecretBox(new Secret(KEY));
  const plain = Object.entries(rows).map(([table, all]) => {
    const opened = (all as readonly Record<string, unknown>[]).map((row) => {
      const copy: Record<string, unknown> = { ...row, credential_at: undefined };
      for (const [of, column, place] of SECRETS) {
        const text = row[column];
        if (of === table && typeof text === "string")
          copy[column] = box.open(text, place.replace("ID", String(row["id"]))).reveal();
      }
      return copy;
    });
    const keyOf = (row: Record<string, unknown>): string => String(row["id"] ?? row["key"]);
    return [table, opened.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))];
  });
  return Object.fromEntries(plain) as Record<string, unknown[]>;
}

async function rowsOfVault(database: Database): Promise<Record<string, unknown[]>> {
  const found: Record<string, unknown[]> = {};
  await database.readContent(async ({ tables }) => {
    for await (const { table, rows } of tables) (found[table] ??= []).push(...rows);
  }, KEYS);
  return found;
}

describe("rows of an SQL database that are restored into Vault", () => {
  it("come back all, with their secrets, and once more after a repetition", async () => {
    const source = await filledDatabase();
    const database = await openAt("round");
    for (const replace of [false, true]) {
      const restored = await database.replaceContent(
        {
          tables: tableRows(source, MIGRATION_NAMES),
          epochs: new Map([["github.com/acme/gears", 12]]),
          raiseEpochs: false,
          replace,
          now: 1000,
        },
        KEYS,
      );
      assert.equal(restored.validTokens, 3);
      assert.deepEqual(comparable(await rowsOfVault(database)), comparable(await rowsOfSql(source)));
    }
    await database.close();
    await source.destroy();
  });

  it("two restores at the same time: one is refused, and the other is whole", async () => {
    const source = await filledDatabase();
    const databases = await Promise.all([openAt("two"), openAt("two")]);
    const results = await Promise.allSettled(
      databases.map(async (database) =>
        database.replaceContent(
          {
            tables: tableRows(source, MIGRATION_NAMES),
            epochs: new Map(),
            raiseEpochs: false,
            replace: false,
            now: 1000,
          },
          KEYS,
        ),
      ),
    );
    const refused = results.filter((each) => each.status === "rejected");
    assert.deepEqual(
      refused.map(({ reason }) => (reason as { code: string }).code),
      ["database_in_use"],
    );
    for (const database of databases) await database.close();
    await source.destroy();
  });
});

describe("a backup of Vault is as of one moment, although the service writes", () => {
  let database: Database;
  let store: Store;
  before(async () => {
    database = await openAt("moment");
    await database.migrate();
    store = await database.store(async () => KEYS);
  });
  after(async () => store?.close());

  /** Rows that a backup has. @param change runs after its moment, before the first row is read */
  const rowsAfter = async (change: () => Promise<void>): Promise<readonly TableRows[]> =>
    database.readContent(async ({ tables }) => {
      await change();
      return Array.fromAsync(tables);
    }, KEYS);
  const rowsOf = (all: readonly TableRows[], table: string): readonly TableRows["rows"][number][] =>
    all.filter((each) => each.table === table).flatMap(({ rows }) => rows);

  it("has no later record, and the earlier version of a changed one", async () => {
    await store.users.ensureHost("1", "ada", "user-1", 1000);
    await store.cachedRepositories.insert({ ...REPOSITORY, id: "repo-1", owner: "acme", name: "one" });
    const all = await rowsAfter(async () => {
      await store.cachedRepositories.insert({ ...REPOSITORY, id: "repo-2", owner: "acme", name: "two" });
      await store.cachedRepositories.insert({ ...REPOSITORY, id: "repo-3", owner: "other", name: "three" });
      // The login of a renamed user goes to another one. Both have it for no moment.
      await store.users.ensureHost("1", "ada-lovelace", "user-1", 2000);
      await store.users.ensureHost("2", "ada", "user-2", 3000);
    });
    assert.deepEqual(
      rowsOf(all, "cached_repositories").map(({ id }) => id),
      ["repo-1"],
    );
    assert.deepEqual(
      rowsOf(all, "users").map(({ id, login }) => [id, login]),
      [["user-1", "ada"]],
    );
  });

  it("a record that changes more often than Vault remembers is an error", async () => {
    await assert.rejects(
      rowsAfter(async () => {
        for (let now = 0; now < 12; now++) await store.users.ensureHost("1", "ada-lovelace", "user-1", now);
      }),
      { code: "database_unavailable", message: /changed so often/, hint: /max_versions/ },
    );
  });
});

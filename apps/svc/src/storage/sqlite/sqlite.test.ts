import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { sql, type Kysely } from "kysely";
import { credential } from "../contract/records.ts";
import { storeContract } from "../contract/suite.ts";
import { encryptionKeys } from "../encryption-key.ts";
import { requireCurrent } from "../migration-state.ts";
import { SecretBox } from "../secret-box.ts";
import { migrate, migrationState } from "../sql/migrations.ts";
import type { Store } from "../store.ts";
import { sqlStore } from "../sql/sql-store.ts";
import type { Tables } from "../rows/tables.ts";
import { openSqlite, sqlitePath, sqliteSpecifics } from "./open.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-store-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const KEY = new Secret("0f".repeat(32));
const MIGRATIONS = [
  "0001_initial",
  "0002_accounts_apps_audit",
  "0003_tokens_minted_by",
  "0004_coordination_additive",
  "0005_instance_address_additive",
  "0006_settings_digests_additive",
  "0007_seed_additive",
  "0008_bundles_additive",
];
const requireMigrated = async (db: Kysely<Tables>): Promise<void> => requireCurrent(await migrationState(db));
let count = 0;
const fresh = (): string => join(folder, `${++count}`, "svc.db");

async function openStore(path: string, key = KEY): Promise<Store> {
  const db = await openSqlite(path);
  await migrate(db);
  return sqlStore({ db, box: new SecretBox(key), specifics: sqliteSpecifics });
}

storeContract("sqlite", async () => openStore(fresh()));

describe("sqlite store", () => {
  it("secret at rest: neither the file nor its journal holds the credential", async () => {
    const path = fresh();
    const store = await openStore(path);
    const user = await store.users.ensure("alice", "id-1", 1);
    await store.users.putCredential(user.id, credential("planted-credential"), 1);
    for (const file of readdirSync(join(path, ".."))) {
      assert.equal(readFileSync(join(path, "..", file)).includes("planted-credential"), false, file);
    }
    await store.close();
    const other = await openStore(path, new Secret("aa".repeat(32)));
    await assert.rejects(other.users.credential(user.id), { code: "encryption_key" });
    await other.close();
    const again = await openStore(path);
    assert.equal((await again.users.credential(user.id))?.accessToken.reveal(), "planted-credential");
    await again.close();
  });

  it("a file that is not a database is named", async () => {
    const path = join(folder, "text.db");
    writeFileSync(path, "not a database, but long enough to be looked at as one".repeat(20));
    await assert.rejects(openSqlite(path), { code: "database_unavailable", message: /text\.db/ });
  });

  it("a connection string may be a path or have a scheme", () => {
    assert.equal(sqlitePath("a/b.db"), "a/b.db");
    assert.equal(sqlitePath("file:a.db?cache=shared"), "a.db");
    assert.equal(sqlitePath("file:///var/a.db"), "/var/a.db");
    assert.equal(sqlitePath("sqlite:///var/a.db"), "/var/a.db");
  });
});

describe("migrations", () => {
  it("an empty database is behind, then current, and a second run does nothing", async () => {
    const db = await openSqlite(fresh());
    await assert.rejects(requireMigrated(db), { code: "database_behind" });
    assert.deepEqual((await migrationState(db)).applied, []);
    assert.deepEqual(await migrate(db), MIGRATIONS);
    assert.deepEqual(await migrate(db), []);
    await requireMigrated(db);
    assert.deepEqual(await migrationState(db), { applied: MIGRATIONS, pending: [], unknown: [] });
    await db.destroy();
  });

  it("a database that is ahead is refused", async () => {
    const db = await openSqlite(fresh());
    await migrate(db);
    await sql`INSERT INTO kysely_migration (name, timestamp) VALUES ('9999_later', '2030-01-01')`.execute(db);
    await assert.rejects(requireMigrated(db), { code: "database_ahead", message: /9999_later/ });
    await assert.rejects(migrate(db), { code: "database_ahead" });
    await db.destroy();
  });

  it("a database that a newer program only added to is used, and changed no further", async () => {
    const db = await openSqlite(fresh());
    await migrate(db);
    const name = "9999_later_additive";
    await sql`INSERT INTO kysely_migration (name, timestamp) VALUES (${name}, '2030-01-01')`.execute(db);
    await requireMigrated(db);
    assert.deepEqual(await migrate(db), []);
    assert.deepEqual(await migrationState(db), { applied: MIGRATIONS, pending: [], unknown: [name] });
    await db.destroy();
  });

  it("an earlier version can write the tables of this one", async () => {
    const db = await openSqlite(fresh());
    await migrate(db);
    const store = sqlStore({ db, box: new SecretBox(KEY), specifics: sqliteSpecifics });
    const end = Date.now() + 60_000;
    await sql`INSERT INTO leases (name, holder, expires_at) VALUES ('a', 'old', ${end})`.execute(db);
    assert.equal(await store.leases.acquire("a", "new", 60_000), undefined);
    await sql`DELETE FROM leases WHERE name = 'a' AND holder = 'old'`.execute(db);
    const lease = await store.leases.acquire("a", "new", 0);
    assert.ok(lease);
    await sql`UPDATE leases SET holder = 'old', expires_at = ${end}`.execute(db);
    assert.equal(await store.leases.renew(lease, 60_000), false);
    await sql`UPDATE leases SET expires_at = 0`.execute(db);
    assert.ok(((await store.leases.acquire("a", "new", 0))?.fence ?? 0) > lease.fence);
    await store.close();
  });

  it("two processes may migrate concurrently", async () => {
    const path = fresh();
    const [one, two] = [await openSqlite(path), await openSqlite(path)];
    await Promise.all([migrate(one), migrate(two)]);
    for (const db of [one, two]) await assert.doesNotReject(requireMigrated(db));
    await one.destroy();
    await two.destroy();
  });
});

describe("secret box", () => {
  const box = new SecretBox(KEY);

  it("opens only for the record it was sealed for, and only unchanged [svc 8.17]", () => {
    const sealed = box.seal(new Secret("s"), "users/1");
    assert.equal(box.open(sealed, "users/1").reveal(), "s");
    assert.throws(() => box.open(sealed, "users/2"), { code: "encryption_key" });
    const changed = sealed.slice(0, -2) + (sealed.at(-2) === "A" ? "BA" : "AA");
    assert.throws(() => box.open(changed, "users/1"), { code: "encryption_key" });
    assert.throws(() => box.open("v1.x", "users/1"), { code: "encryption_key" });
    assert.notEqual(sealed, box.seal(new Secret("s"), "users/1"));
  });

  it("a previous key still opens, and new secrets use the current one", () => {
    const rotated = new SecretBox(new Secret("bb".repeat(32)), KEY);
    assert.equal(rotated.open(box.seal(new Secret("s"), "r"), "r").reveal(), "s");
    assert.throws(() => box.open(rotated.seal(new Secret("s"), "r"), "r"), /another key/);
  });
});

describe("encryption key", () => {
  it("is generated once in development mode, readable by the owner only", async () => {
    const source = { developmentMode: true, dataDir: folder };
    const key = (await encryptionKeys(source)).current;
    assert.match(key.reveal(), /^[0-9a-f]{64}$/);
    assert.equal((await encryptionKeys(source)).current.reveal(), key.reveal());
    assert.equal(statSync(join(folder, "encryption.key")).mode & 0o777, 0o600);
  });

  it("missing outside development mode refuses", async () => {
    await assert.rejects(encryptionKeys({ developmentMode: false, dataDir: folder }), {
      code: "config_refused",
    });
  });
});

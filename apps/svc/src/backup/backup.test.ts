import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { PassThrough } from "node:stream";
import { gunzipSync } from "node:zlib";
import { Secret } from "@devplat/base";
import {
  randomFrom,
  run,
  runAtTerminal,
  tempFolder,
  testSeed,
  loopSeconds,
  type TempFolder,
} from "@devplat/testkit";
import { generateX25519Identity, identityToRecipient } from "age-encryption";
import { sql, type Kysely } from "kysely";
import {
  CONTENT_TABLES,
  insertRows,
  PASSING_TABLES,
  readContent,
  replaceContent,
} from "../storage/sql/content.ts";
import { auditRecord } from "../storage/contract/records.ts";
import { sqlAudit } from "../storage/sql/audit.ts";
import { migrate, migrateTo, MIGRATION_NAMES } from "../storage/sql/migrations.ts";
import type { Tables } from "../storage/rows/tables.ts";
import { openSqlite, sqliteSpecifics } from "../storage/sqlite/open.ts";
import { openBackupFile, writeBackupFile } from "./backup-file.ts";
import { backupOf, filledDatabase, FUTURE, KEY, rowsOf, streamOf } from "./backup.test-kit.ts";
import type { Protection, Unlocking } from "./encryption.ts";
import { StagedBackup } from "./staged-backup.ts";

const PASSPHRASE = "correct horse battery";
let folder: TempFolder;
let db: Kysely<Tables>;
let identity: string;
let recipients: Protection;
let unlocking: Unlocking;
before(async () => {
  folder = await tempFolder("backup");
  db = await filledDatabase();
  identity = await generateX25519Identity();
  recipients = { kind: "recipients", recipients: [await identityToRecipient(identity)] };
  unlocking = { kind: "identities", identities: [new Secret(identity)] };
});
after(async () => {
  await db?.destroy();
  await folder?.remove();
});

async function read(bytes: Uint8Array, how: Unlocking = unlocking): Promise<StagedBackup> {
  return StagedBackup.read(streamOf(bytes), how, () => undefined);
}

async function emptyDatabase(): Promise<Kysely<Tables>> {
  const target = await openSqlite(":memory:");
  await migrate(target);
  return target;
}

async function put(staged: StagedBackup, target: Kysely<Tables>, replace = false) {
  return replaceContent(target, sqliteSpecifics, {
    tables: staged.tables(),
    epochs: await staged.epochs(),
    raiseEpochs: false,
    replace,
    now: Date.now(),
  });
}

describe("a backup of a SQL database", () => {
  it("brings back every row of every table that it covers", async () => {
    const staged = await read(await backupOf(db, recipients));
    const target = await emptyDatabase();
    await put(staged, target);
    const expected = await rowsOf(db);
    assert.deepEqual(Object.keys(expected).toSorted(), CONTENT_TABLES.map(({ name }) => name).toSorted());
    assert.deepEqual(await rowsOf(target), expected);
    await staged.close();
    await target.destroy();
  });

  it("covers each table of the schema, or leaves it out on purpose", async () => {
    const tables = (await db.introspection.getTables()).map(({ name }) => name);
    const known = [...CONTENT_TABLES.map(({ name }) => name), ...PASSING_TABLES];
    assert.deepEqual(tables.toSorted(), known.toSorted());
  });

  it("holds one moment: writes of other connections during the backup are not in it", async () => {
    const path = join(folder.path, "moment.db");
    const source = await filledDatabase(path);
    const writer = await openSqlite(path);
    const count = await readContent(source, async ({ tables }) => {
      let found = 0;
      for await (const { table, rows } of tables) {
        if (table === "users") {
          await writer.deleteFrom("audit").where("id", "<", "z").execute();
          await writer.insertInto("repository_epochs").values({ key: "later", epoch: 1 }).execute();
        }
        found += rows.filter((row) => table === "audit" || row["key"] === "later").length;
      }
      return found;
    });
    assert.equal(count, 1200);
    await writer.destroy();
    await source.destroy();
  });

  it("of an earlier version is migrated", async () => {
    const old = await openSqlite(":memory:");
    await migrateTo(old, "0003_tokens_minted_by");
    await sql`INSERT INTO users (id, login, login_key, created_at) VALUES ('u1', 'Bob', 'bob', 7)`.execute(
      old,
    );
    const staged = await read(await backupOf(old, recipients));
    assert.deepEqual(staged.migrated, MIGRATION_NAMES.slice(3));
    const target = await emptyDatabase();
    await put(staged, target);
    const users = await target.selectFrom("users").select("login").execute();
    assert.deepEqual(
      users.map(({ login }) => login),
      ["Bob"],
    );
    await Promise.all([staged.close(), target.destroy(), old.destroy()]);
  });

  it("a database of a newer version is not backed up, as its tables are not known", async () => {
    const newer = await filledDatabase();
    await sql`INSERT INTO kysely_migration (name, timestamp) VALUES ('9999_more_additive', 'now')`.execute(
      newer,
    );
    await assert.rejects(backupOf(newer, recipients), {
      code: "database_ahead",
      message: /9999_more_additive/,
    });
    await newer.destroy();
  });

  it("an error of the database is reported as one, and no file is left", async () => {
    const broken = await filledDatabase();
    await sql`DROP TABLE audit`.execute(broken);
    const path = join(folder.path, "broken.age");
    const written = backupOf(broken, recipients, undefined, async (bytes) => writeBackupFile(path, bytes));
    await assert.rejects(written, { code: "database_unavailable", message: /database did not answer/ });
    assert.deepEqual(
      (await readdir(folder.path)).filter((name) => name.includes("broken")),
      [],
    );
    await broken.destroy();
  });

  it("a database with content is refused and unchanged, and replaced only on demand", async () => {
    const staged = await read(await backupOf(db, recipients));
    const target = await filledDatabase();
    const former = await rowsOf(target);
    await assert.rejects(put(staged, target), { code: "database_not_empty", message: /users: 1/ });
    assert.deepEqual(await rowsOf(target), former);
    await put(staged, target, true);
    assert.deepEqual((await rowsOf(target))["tokens"], (await rowsOf(db))["tokens"]);
    const { rows } = await sql`SELECT * FROM one_time`.execute(target);
    assert.equal(rows.length, 0, "pending sign-ins are deleted");
    await Promise.all([staged.close(), target.destroy()]);
  });

  it("a database with a running instance is refused", async () => {
    const staged = await read(await backupOf(db, recipients));
    const target = await emptyDatabase();
    const instance = {
      id: "i",
      host_name: "box",
      version: "1",
      ready: 1,
      started_at: 1,
      reported_at: Date.now(),
    };
    const none = { figures: null, figures_at: null, address: null, manifest_key_id: null };
    await target
      .insertInto("instances")
      .values({ ...instance, ...none })
      .execute();
    await assert.rejects(put(staged, target), { code: "database_in_use", message: /box/ });
    await Promise.all([staged.close(), target.destroy()]);
  });

  it("tokens that the replaced database has as revoked stay revoked", async () => {
    const path = join(folder.path, "revoked.db");
    const source = await filledDatabase(path);
    const staged = await read(await backupOf(source, recipients));
    await source.updateTable("tokens").set({ revoked_at: 99 }).where("revoked_at", "is", null).execute();
    const { revocations } = await put(staged, source, true);
    assert.equal(revocations, 2);
    const valid = await source.selectFrom("tokens").select("id").where("revoked_at", "is", null).execute();
    assert.deepEqual(valid, []);
    await Promise.all([staged.close(), source.destroy()]);
  });

  it("an administration token that the replaced database has as revoked stays revoked", async () => {
    const source = await filledDatabase(join(folder.path, "revoked-administration.db"));
    const bytes = await backupOf(source, recipients);
    const tokens = source.selectFrom("sessions").select("id").where("kind", "=", "administration");
    const { id } = await tokens.executeTakeFirstOrThrow();
    await source.deleteFrom("sessions").where("id", "=", id).execute();
    await sqlAudit(source).append([auditRecord({ action: "admin_token.revoked", target: id })]);
    const staged = await read(bytes);
    const { revocations, validTokens } = await put(staged, source, true);
    assert.deepEqual({ revocations, validTokens }, { revocations: 1, validTokens: 2 });
    assert.deepEqual(await tokens.execute(), []);
    await Promise.all([staged.close(), source.destroy()]);
  });

  it("counts of ended, valid and revoked tokens leave out those that had expired", async () => {
    const source = await filledDatabase(join(folder.path, "expired.db"));
    const expired = { expires_at: 2 };
    for (const [kind, name] of [
      ["session", "s"],
      ["administration", "a"],
    ] as const) {
      const row = await source.selectFrom("sessions").selectAll().where("kind", "=", kind).executeTakeFirst();
      assert.ok(row);
      await source
        .insertInto("sessions")
        .values({ ...row, ...expired, id: name, token_hash: name })
        .execute();
    }
    // More than one statement revokes.
    const token = await source
      .selectFrom("tokens")
      .selectAll()
      .where("expires_at", "=", FUTURE)
      .executeTakeFirst();
    assert.ok(token);
    const rows = Array.from({ length: 300 }, (_, index) => ({
      ...token,
      ...expired,
      id: `expired-${index}`,
      token_hash: `expired-${index}`,
    }));
    await insertRows(source, { table: "tokens", rows });
    const bytes = await backupOf(source, recipients);
    const setTimes = sql`UPDATE tokens SET revoked_at = 1000 + rowid WHERE revoked_at IS NULL`;
    await setTimes.execute(source);
    const revoked = await source.selectFrom("tokens").select(["id", "revoked_at"]).orderBy("id").execute();
    const kept = await read(bytes);
    const { revocations, validTokens } = await put(kept, source, true);
    assert.deepEqual({ revocations, validTokens }, { revocations: 2, validTokens: 1 });
    const again = await source.selectFrom("tokens").select(["id", "revoked_at"]).orderBy("id").execute();
    assert.deepEqual(again, revoked);
    const ended = await read(bytes);
    assert.equal(await ended.endSessions(Date.now()), 1);
    assert.equal(await ended.endTokens(Date.now()), 3);
    const strict = await put(ended, source, true);
    assert.deepEqual([strict.revocations, strict.validTokens], [0, 0]);
    await Promise.all([kept.close(), ended.close(), source.destroy()]);
  });

  it("epochs become higher than those of the backup and of the database", async () => {
    const staged = await read(await backupOf(db, recipients));
    const target = await emptyDatabase();
    await target.insertInto("repository_epochs").values({ key: "a", epoch: FUTURE }).execute();
    const began = Date.now();
    await replaceContent(target, sqliteSpecifics, {
      tables: staged.tables(),
      epochs: new Map([...(await staged.epochs()), ["a", 3], ["listed", 0]]),
      raiseEpochs: true,
      replace: true,
      now: Date.now(),
    });
    const rows = await target.selectFrom("repository_epochs").selectAll().execute();
    const epochs = Object.fromEntries(rows.map(({ key, epoch }) => [key, epoch]));
    assert.equal(epochs["a"], FUTURE + 1);
    for (const key of ["listed", "github.com/acme/gears"]) assert.ok((epochs[key] ?? 0) >= began, key);
    const counts = await target.selectFrom("changes").select("topic").execute();
    assert.deepEqual(counts.map(({ topic }) => topic).toSorted(), ["epochs", "repositories"]);
    await Promise.all([staged.close(), target.destroy()]);
  });

  it("sessions and tokens end, each kind on its own", async () => {
    const staged = await read(await backupOf(db, recipients));
    assert.equal(await staged.countTokens(Date.now()), 3);
    assert.equal(await staged.endSessions(Date.now()), 1);
    assert.equal(await staged.countTokens(Date.now()), 3);
    assert.equal(await staged.endTokens(Date.now()), 3);
    assert.equal(await staged.countTokens(Date.now()), 0);
    await staged.close();
  });

  it("secrets are encrypted for another key with the key of the backup, and never lost", async () => {
    const other = new Secret("1b".repeat(32));
    const staged = await read(await backupOf(db, recipients));
    await assert.rejects(staged.encryptFor(other, []), {
      code: "encryption_key",
      message: /the backup does not have it/,
    });
    await staged.encryptFor(other, [new Secret(KEY)]);
    const target = await emptyDatabase();
    await put(staged, target);
    const { SecretBox } = await import("../storage/secret-box.ts");
    const { sqlStore } = await import("../storage/sql/sql-store.ts");
    const store = sqlStore({ db: target, box: new SecretBox(other), specifics: sqliteSpecifics });
    const [user] = await store.users.list();
    assert.equal((await store.users.credential(user?.id ?? ""))?.accessToken.reveal(), "planted-credential");
    assert.equal((await store.apps.list())[0]?.webhookSecret?.reveal(), "planted-webhook-secret");
    await Promise.all([staged.close(), target.destroy()]);
  });
});

describe("the file of a backup", () => {
  it("stock age opens it, for a recipient", async () => {
    const [path, key] = [join(folder.path, "stock.age"), join(folder.path, "identity")];
    await writeFile(path, await backupOf(db, recipients));
    await writeFile(key, `# comment\n${identity}\n`);
    const plain = join(folder.path, "stock.gz");
    const done = await run("age", ["-d", "-i", key, "-o", plain, path]);
    assert.equal(done.code, 0, done.stderr);
    const { readFile } = await import("node:fs/promises");
    const lines = gunzipSync(await readFile(plain))
      .toString()
      .trim()
      .split("\n");
    assert.match(lines[0] ?? "", /^\{"backup":\{"format":"svc-backup","version":1,/);
    assert.match(lines.at(-1) ?? "", /^\{"end":\{"rows":\{"users":1,/);
  });

  it("stock age opens it, with a passphrase, and a file of stock age is read", async () => {
    const path = join(folder.path, "passphrase.age");
    await writeFile(path, await backupOf(db, { kind: "passphrase", passphrase: new Secret(PASSPHRASE) }));
    const plain = join(folder.path, "passphrase.gz");
    const env = { PATH: process.env["PATH"] };
    const opened = await runAtTerminal("age", ["-d", "-o", plain, path], {
      env,
      answers: [[/passphrase/, PASSPHRASE]],
    });
    assert.equal(opened.code, 0, opened.shown);
    const again = join(folder.path, "again.age");
    const made = await runAtTerminal("age", ["-p", "-o", again, plain], {
      env,
      answers: [
        [/Enter passphrase/, PASSPHRASE],
        [/Confirm passphrase/, PASSPHRASE],
      ],
    });
    assert.equal(made.code, 0, made.shown);
    const { readFile } = await import("node:fs/promises");
    const passphrase = async (): Promise<Secret> => new Secret(PASSPHRASE);
    const staged = await read(await readFile(again), { kind: "passphrase", passphrase });
    assert.equal(staged.backup.rows["users"], 1);
    await staged.close();
  });

  it("holds no secret in plain text", async () => {
    const bytes = await backupOf(db, recipients);
    for (const secret of [KEY, "planted-client-secret", "alice"]) assert.equal(bytes.includes(secret), false);
  });

  it("is closed when it is refused, also before its end", async () => {
    for (const bytes of [
      Buffer.from("a file that is not encrypted with age"),
      await backupOf(db, recipients),
    ]) {
      const endless = new PassThrough();
      endless.write(bytes);
      const passphrase = async (): Promise<Secret> => new Secret(PASSPHRASE);
      const done = StagedBackup.read(endless, { kind: "passphrase", passphrase }, () => undefined);
      await assert.rejects(done, isRefusal);
      assert.equal(endless.destroyed, true);
    }
  });

  it("is not a folder", async () => {
    await assert.rejects(openBackupFile(folder.path), { code: "backup_failed", message: /it is a folder/ });
  });

  it("another identity, and a passphrase in place of an identity, do not open it", async () => {
    const bytes = await backupOf(db, recipients);
    const other: Unlocking = { kind: "identities", identities: [new Secret(await generateX25519Identity())] };
    await assert.rejects(read(bytes, other), { code: "backup_locked" });
    const passphrase = async (): Promise<Secret> => assert.fail("it is not asked for");
    await assert.rejects(read(bytes, { kind: "passphrase", passphrase }), { code: "backup_locked" });
  });

  it("cut off anywhere, it is refused", async () => {
    const bytes = await backupOf(db, recipients);
    const ends = new Set([0, 1, 21, 22, 100, 250, bytes.length - 1, bytes.length - 16, bytes.length - 17]);
    for (let end = 300; end < bytes.length; end += Math.ceil(bytes.length / 40)) ends.add(end);
    for (const end of ends) {
      await assert.rejects(read(bytes.subarray(0, end)), isRefusal, `cut off at ${end} of ${bytes.length}`);
    }
    await assert.rejects(read(Buffer.concat([bytes, Buffer.from("x")])), isRefusal, "with a byte more");
  });

  it("with a flipped bit anywhere, it is refused", async () => {
    const bytes = await backupOf(db, recipients);
    const seed = testSeed();
    const random = randomFrom(seed);
    const until = performance.now() + 1000 * loopSeconds(0.02);
    for (let index = 0; index < 30 || performance.now() < until; index++) {
      const at = index < 30 ? Math.floor((index / 30) * bytes.length) : Math.floor(random() * bytes.length);
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ (1 << Math.floor(random() * 8));
      await assert.rejects(read(changed), isRefusal, `byte ${at} of ${bytes.length}, seed ${seed}`);
    }
  });
});

function isRefusal(error: unknown): boolean {
  const { code } = Object(error) as { code?: unknown };
  return code === "backup_refused" || code === "backup_locked";
}

import { randomUUIDv7 } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { Secret } from "@devplat/base";
import { Encrypter } from "age-encryption";
import type { Kysely } from "kysely";
import {
  appRecord,
  auditRecord,
  credential,
  oneTimeRecord,
  repositoryRecord,
  sessionRecord,
  tokenRecord,
} from "../storage/contract/records.ts";
import { SecretBox } from "../storage/secret-box.ts";
import { readContent, tableRows } from "../storage/sql/content.ts";
import { migrate, MIGRATION_NAMES } from "../storage/sql/migrations.ts";
import { sqlStore } from "../storage/sql/sql-store.ts";
import type { Tables } from "../storage/rows/tables.ts";
import { openSqlite, sqliteSpecifics } from "../storage/sqlite/open.ts";
import type { BackupConfiguration, BackupKey } from "./backup-format.ts";
import { writeBackup } from "./backup-writer.ts";
import type { Protection, Unlocking } from "./encryption.ts";

export const KEY = "0f".repeat(32);
/** An identity of age that is made for the tests. */
export const IDENTITY = "AGE-SECRET-KEY-1M56ULW0YQKVYKQ8XYERTD8MJVJ88FYQXG38PTNAQALLYXH0Q96NQHQTKYN";

/** Far enough in the future for all tests, and within the range of a Date. */
export const FUTURE = 8_000_000_000_000;

/** A database with rows in every table, and a secret in each place that has one. */
export async function filledDatabase(path = ":memory:"): Promise<Kysely<Tables>> {
  const db = await openSqlite(path);
  await migrate(db);
  const store = sqlStore({ db, box: new SecretBox(new Secret(KEY)), specifics: sqliteSpecifics });
  const user = await store.users.ensure("alice", randomUUIDv7(), 1);
  await store.users.putCredential(user.id, credential("planted-credential"), 1);
  await store.sessions.insert(await sessionRecord(store, { expiresAt: FUTURE }));
  await store.sessions.insert(await sessionRecord(store, { kind: "administration", expiresAt: FUTURE }));
  await store.tokens.insert(await tokenRecord(store, { expiresAt: FUTURE }));
  await store.tokens.insert(await tokenRecord(store, { expiresAt: undefined, description: "ünïcode 🐙" }));
  await store.tokens.insert(await tokenRecord(store, { revokedAt: 5 }));
  await store.cachedRepositories.insert(repositoryRecord());
  await store.cachedRepositories.insert(
    repositoryRecord({ owner: "Acme", name: "gears", maxCacheSizeMb: 5 }),
  );
  await store.apps.insert(appRecord({ webhookSecret: new Secret("planted-webhook-secret") }));
  await store.epochs.adopt("github.com/acme/gears", 12);
  await store.manifestPointers.replace(
    "github.com/acme/gears",
    { name: "m", generation: 1, fence: 0 },
    undefined,
  );
  await store.leases.acquire("warm", "holder", 1000);
  await store.oneTime.put(oneTimeRecord({ expiresAt: FUTURE }), 1);
  await store.audit.append(
    Array.from({ length: 1200 }, () => auditRecord({ details: { scopes: "contents:read" } })),
  );
  return db;
}

/** Rows by table. */
export async function rowsOf(db: Kysely<Tables>): Promise<Record<string, unknown[]>> {
  const found: Record<string, unknown[]> = {};
  for await (const { table, rows } of tableRows(db, MIGRATION_NAMES)) {
    (found[table] ??= []).push(...rows.map((row) => ({ ...row })));
  }
  return found;
}

export const CONFIGURATION: BackupConfiguration = {
  file: "/etc/svc/config.yaml",
  text: "host: { url: https://github.com }\n",
  environment: { SVC_HOST_CLIENT_SECRET: "planted-client-secret" },
};

/**
 * @param key null: the backup has none
 * @param write takes the bytes. By default they are returned
 */
export async function backupOf(
  db: Kysely<Tables>,
  protection: Protection,
  key: BackupKey | null = { current: KEY, previous: null },
  write?: (bytes: Readable) => Promise<void>,
): Promise<Buffer> {
  let bytes = Buffer.alloc(0);
  await readContent(db, async (content) =>
    writeBackup(
      {
        header: {
          program: "0.1.0",
          created_at: "2026-11-24T12:00:00.000Z",
          driver: "sqlite",
          host_url: "https://github.com",
          key_id: "0f0f0f0f",
        },
        configuration: CONFIGURATION,
        key: key ?? undefined,
        content,
        protection,
        progress: () => undefined,
      },
      write ??
        (async (stream) => {
          bytes = await buffer(stream);
        }),
    ),
  );
  return bytes;
}

export const UNLOCKING: Unlocking = { kind: "identities", identities: [new Secret(IDENTITY)] };

/** A file that is encrypted well, with this content. Everybody who knows a recipient can make one. */
export async function forged(recipient: string, content: string | Uint8Array): Promise<Buffer> {
  const encrypter = new Encrypter();
  encrypter.addRecipient(recipient);
  return Buffer.from(await encrypter.encrypt(gzipSync(content)));
}

export function streamOf(bytes: Uint8Array): Readable {
  return Readable.from([bytes], { objectMode: false });
}

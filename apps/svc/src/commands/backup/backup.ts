import { randomUUIDv7 } from "node:crypto";
import { access } from "node:fs/promises";
import { resolve } from "node:path";
import { messageOf, systemClock, systemCode } from "@devplat/base";
import { noteLine, printLine } from "@devplat/base/terminal";
import { flagOf, printResult, textOf, textsOf, type Options } from "@devplat/cli";
import { STANDARD_STREAM, writeBackupFile, writeStandardOutput } from "../../backup/backup-file.ts";
import type { BackupKey } from "../../backup/backup-format.ts";
import { protectionOf } from "../../backup/backup-secrets.ts";
import { writeBackup } from "../../backup/backup-writer.ts";
import { configurationPart } from "../../backup/configuration-part.ts";
import { progressNote } from "../../backup/progress-note.ts";
import { countsText } from "../../backup/row-counts.ts";
import { refuseUnusable } from "../../config/refusals.ts";
import { SvcError } from "../../errors.ts";
import { databaseSettings, encryptionKeySource } from "../../storage/database-settings.ts";
import type { DatabaseContent } from "../../storage/database-content.ts";
import type { Database, EncryptionKeys } from "../../storage/database.ts";
import { encryptionKeys, newEncryptionKey, type EncryptionKeySource } from "../../storage/encryption-key.ts";
import { databaseFile, openDatabase, type DatabaseSettings } from "../../storage/open-store.ts";
import { encryptionKeyId } from "../../storage/secret-box.ts";
import type { Store } from "../../storage/store.ts";
import { programVersion } from "../../version.ts";
import { readConfig, type RunCommand } from "../command.ts";

/** Writes a backup of database, key and configuration. The service may run. */
export const backup: RunCommand = async ({ flags, options, environment }) => {
  const output = textOf(options, "output") ?? STANDARD_STREAM;
  const isStream = output === STANDARD_STREAM;
  refuseStandardOutput(isStream, options);
  const { config, file } = await readConfig(flags);
  refuseUnusable(config);
  const protection = await protectionOf({
    recipients: textsOf(options, "recipient"),
    recipientFiles: textsOf(options, "recipients-file"),
    identityFiles: [],
    passphraseFile: textOf(options, "passphrase-file"),
    environment,
  });
  const settings = databaseSettings(config);
  await refuseMissing(settings);
  const database = await openDatabase(settings);
  try {
    const isBehind = await refuseEmpty(database);
    const withoutKey = flagOf(options, "without-key");
    const keys = await keysOfBackup(database, encryptionKeySource(config), withoutKey);
    const store = isBehind ? undefined : await openSecrets(database, keys, withoutKey);
    const key = backupKey(keys);
    const configuration = await configurationPart(file, environment, { withoutKey, keys: key });
    const createdAt = new Date(systemClock.now());
    const isQuiet = flagOf(options, "json");
    const progress = progressNote("saved", isQuiet);
    const write = async (content: DatabaseContent): Promise<Readonly<Record<string, number>>> =>
      writeBackup(
        {
          header: {
            program: programVersion(),
            created_at: createdAt.toISOString(),
            driver: settings.driver,
            host_url: config.host.url,
            key_id: encryptionKeyId(keys.current),
          },
          configuration,
          key: withoutKey ? undefined : key,
          content,
          protection,
          progress,
        },
        async (bytes) => (isStream ? writeStandardOutput(bytes) : writeBackupFile(output, bytes)),
      );
    const rows = await database.readContent(write, keys);
    if (store !== undefined) await recordBackup(store, withoutKey);
    const result = { file: isStream ? null : resolve(output), created_at: createdAt.toISOString(), rows };
    const line = `saved ${countsText(rows)}${withoutKey ? ", without a key" : ""}`;
    // Standard output is the backup.
    if (isStream) noteLine(line);
    else printResult(options, { ...result, has_key: !withoutKey }, () => printLine(`${line} to ${output}`));
  } finally {
    await database.close();
  }
};

/** @throws SvcError `usage` */
function refuseStandardOutput(isStream: boolean, options: Options): void {
  if (!isStream) return;
  if (process.stdout.isTTY) {
    throw new SvcError(
      "usage",
      "Cannot write the backup to a terminal: redirect the output, or name a file (-o FILE)",
    );
  }
  if (flagOf(options, "json")) throw new SvcError("usage", "--json needs a file for the backup (-o FILE)");
}

/** Opening a file that is not there would make it. @throws SvcError `database_unavailable` */
async function refuseMissing(settings: DatabaseSettings): Promise<void> {
  const path = await databaseFile(settings);
  if (path === undefined) return;
  try {
    await access(path);
  } catch (error) {
    const isDenied = systemCode(error) === "EACCES";
    const reason = isDenied ? "permission denied" : "it does not exist";
    throw new SvcError("database_unavailable", `Cannot back up the database "${path}": ${reason}`, {
      hint: isDenied
        ? "Run the command as the user of the service."
        : "Check data_dir and database.dsn. Is this the configuration of the service (--config)?",
    });
  }
}

/** @returns whether it lacks migrations @throws SvcError `database_behind`: it has none at all */
async function refuseEmpty(database: Database): Promise<boolean> {
  const { applied, pending, unknown } = await database.state();
  if (applied.length + unknown.length === 0) {
    throw new SvcError(
      "database_behind",
      "Cannot back up the database: it was never prepared, and holds nothing",
      {
        hint: "Check data_dir and database.dsn. 'svc migrate' prepares a new database.",
      },
    );
  }
  return pending.length > 0;
}

/**
 * The keys of the stored secrets. Vault gives secrets as plain text: without a configured key, they are encrypted with a key of
 * this backup.
 *
 * @throws SvcError `config_refused`
 */
async function keysOfBackup(
  database: Database,
  source: EncryptionKeySource,
  withoutKey: boolean,
): Promise<EncryptionKeys> {
  if (!database.encryptsSecrets || source.key !== undefined) return encryptionKeys(source);
  if (withoutKey) {
    throw new SvcError(
      "config_refused",
      "Cannot leave the key out: the secrets of a database in Vault have no encryption key of this service",
      { hint: "Set SVC_ENCRYPTION_KEY to a key that you keep elsewhere. The restore needs it." },
    );
  }
  return { current: newEncryptionKey(), previous: undefined };
}

function backupKey({ current, previous }: EncryptionKeys): BackupKey {
  return { current: current.reveal(), previous: previous?.reveal() ?? null };
}

/**
 * Opens the store, which needs the keys of all stored secrets. A backup with another key could not be used.
 *
 * @returns undefined: the key is another one, and the backup leaves it out anyway
 * @throws SvcError `encryption_key`
 */
async function openSecrets(
  database: Database,
  keys: EncryptionKeys,
  withoutKey: boolean,
): Promise<Store | undefined> {
  try {
    return await database.store(async () => keys);
  } catch (error) {
    if (!withoutKey || !(error instanceof SvcError) || error.code !== "encryption_key") throw error;
    noteLine(`${error.message}. A restore needs that key. The backup will not be in the audit`);
    return undefined;
  }
}

/** The backup is complete: a database that does not take the record must not make it look failed. */
async function recordBackup(store: Store, withoutKey: boolean): Promise<void> {
  try {
    await store.audit.append([
      {
        id: randomUUIDv7(),
        at: systemClock.now(),
        action: "backup.created",
        outcome: "allowed",
        actor: { kind: "system" },
        details: { key: !withoutKey },
      },
    ]);
  } catch (error) {
    noteLine(`The backup is complete, but not in the audit: ${messageOf(error)}`);
  }
}

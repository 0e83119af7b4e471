import { randomUUIDv7 } from "node:crypto";
import { Secret, systemClock } from "@devplat/base";
import { repositoryId } from "../access/repository-id.ts";
import type { Config } from "../config/schema.ts";
import { codeHostKey, repositoryKey } from "../coordination/repository-key.ts";
import { SvcError } from "../errors.ts";
import { databaseSettings, encryptionKeySource } from "../storage/database-settings.ts";
import type { Replaced } from "../storage/database-content.ts";
import type { Database, EncryptionKeys } from "../storage/database.ts";
import { adoptKey, encryptionKeys, newEncryptionKey } from "../storage/encryption-key.ts";
import { openDatabase } from "../storage/open-store.ts";
import type { ListedRepository, StagedBackup } from "./staged-backup.ts";

export interface RestoreChoices {
  /** Deletes what the database has. */
  readonly replace: boolean;
  readonly keepSessions: boolean;
  readonly keepTokens: boolean;
  /** Cached data of the instances stays valid. */
  readonly keepCache: boolean;
  /** Takes a backup of another code host. */
  readonly otherHost: boolean;
}

/** Result of a restore. Undefined numbers: nothing of that kind was done. */
export interface Restored extends Replaced {
  readonly migrated: readonly string[];
  readonly endedSessions: number | undefined;
  readonly endedTokens: number | undefined;
  /** Repositories whose cached data is not valid any more. */
  readonly purged: number | undefined;
  /** File that the encryption key of the backup was written to. */
  readonly keyFile: string | undefined;
}

/**
 * Puts the rows of a backup into the database of the configuration, all or nothing.
 *
 * @throws SvcError `backup_refused`, `database_not_empty`, `database_in_use`, `database_ahead`, `encryption_key`, `config_refused`
 */
export async function restoreDatabase(
  staged: StagedBackup,
  config: Config,
  choices: RestoreChoices,
): Promise<Restored> {
  const { header, key } = staged.backup;
  if (!choices.otherHost) refuseOtherHost(header.host_url, config.host.url);
  const now = systemClock.now();
  const database = await openDatabase(databaseSettings(config));
  try {
    // The replacement refuses the same again. But by then the database is migrated, and the key is written.
    await database.refuseReplacement(choices.replace);
    const ofBackup = [key?.current, key?.previous ?? undefined]
      .filter((each) => each !== undefined)
      .map((each) => new Secret(each));
    const { keys, keyFile, others } = await targetKeys(database, config, ofBackup[0]);
    const previous = keys.previous === undefined ? [] : [keys.previous];
    await staged.encryptFor(keys.current, [...ofBackup, ...previous, ...others]);
    const endedSessions = choices.keepSessions ? undefined : await staged.endSessions(now);
    const endedTokens = choices.keepTokens ? undefined : await staged.endTokens(now);
    await staged.record({
      id: randomUUIDv7(),
      at: now,
      action: "backup.restored",
      outcome: "allowed",
      actor: { kind: "system" },
      details: {
        backup: header.created_at,
        ended_sessions: endedSessions ?? 0,
        ended_tokens: endedTokens ?? 0,
      },
    });
    const listed = await staged.listed();
    const epochs = await knownEpochs(staged, listed, config);
    const content = {
      tables: staged.tables(),
      epochs,
      raiseEpochs: !choices.keepCache,
      replace: choices.replace,
      now,
    };
    const replaced = await database.replaceContent(content, keys);
    return {
      ...replaced,
      migrated: staged.migrated,
      endedSessions,
      endedTokens,
      purged: choices.keepCache ? undefined : listed.length,
      keyFile,
    };
  } finally {
    await database.close();
  }
}

/** Credentials of users would be sent to the code host of the configuration. @throws SvcError `backup_refused` */
function refuseOtherHost(ofBackup: string, configured: string): void {
  if (codeHostKey(ofBackup) === codeHostKey(configured)) return;
  throw new SvcError(
    "backup_refused",
    `Cannot restore: the backup is of the code host ${ofBackup}, but the configuration has ${configured}`,
    {
      hint: `Set host.url (SVC_HOST_URL) to ${ofBackup}. If it is the same host with another address, give --other-host.`,
    },
  );
}

interface TargetKeys {
  readonly keys: EncryptionKeys;
  /** File that a key was written to. */
  readonly keyFile: string | undefined;
  /** Keys that may open secrets of a backup without its key. */
  readonly others: readonly Secret[];
}

/**
 * Keys of the target. Vault stores plain text, so any key does until then. In development mode the key is in a file, which a
 * machine that was lost does not have.
 */
async function targetKeys(
  database: Database,
  config: Config,
  ofBackup: Secret | undefined,
): Promise<TargetKeys> {
  const source = encryptionKeySource(config);
  if (database.encryptsSecrets) {
    const others = [source.key, source.key_previous].filter((key) => key !== undefined);
    return { keys: { current: newEncryptionKey(), previous: undefined }, keyFile: undefined, others };
  }
  const keyFile = ofBackup === undefined ? undefined : await adoptKey(source, ofBackup);
  try {
    return { keys: await encryptionKeys(source), keyFile, others: [] };
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== "config_refused" || ofBackup === undefined)
      throw error;
    throw new SvcError("config_refused", error.message, {
      hint: "The backup has the key. 'svc restore FILE --configuration FOLDER' writes it into FOLDER/secrets.env.",
    });
  }
}

/**
 * Epochs of the backup, and 0 for listed repositories that were never purged: they may have been since. The address of the code host
 * may have been given another way to the backup than to this machine.
 */
async function knownEpochs(
  staged: StagedBackup,
  listed: readonly ListedRepository[],
  { host }: Config,
): Promise<ReadonlyMap<string, number>> {
  const hosts = new Set([host.url, staged.backup.header.host_url]);
  const keys = [...hosts].flatMap((url) =>
    listed.map(({ owner, name }) => [repositoryKey(url, repositoryId(owner, name)), 0] as const),
  );
  return new Map([...keys, ...(await staged.epochs())]);
}

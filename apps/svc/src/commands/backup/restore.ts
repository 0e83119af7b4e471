import { resolve } from "node:path";
import { noteLine, printLine } from "@devplat/base/terminal";
import { flagOf, printResult, textOf, textsOf, type Options } from "@devplat/cli";
import { openBackupFile } from "../../backup/backup-file.ts";
import type { ReadBackup } from "../../backup/backup-reader.ts";
import { unlockingOf } from "../../backup/backup-secrets.ts";
import { namingFullDisk } from "../../backup/disk-full.ts";
import { progressNote } from "../../backup/progress-note.ts";
import { restoreDatabase, type Restored } from "../../backup/restore-database.ts";
import { writeConfiguration } from "../../backup/restored-configuration.ts";
import { countsText } from "../../backup/row-counts.ts";
import { StagedBackup } from "../../backup/staged-backup.ts";
import { refuseUnusable } from "../../config/refusals.ts";
import { readConfig, type Invocation, type RunCommand } from "../command.ts";

/** Restores a backup: first it is read to its end and checked, then the database changes. */
export const restore: RunCommand = async (invocation) =>
  namingFullDisk(async () => restoreBackup(invocation));

async function restoreBackup({
  positionals: [file = ""],
  flags,
  options,
  environment,
}: Invocation): Promise<void> {
  const unlocking = await unlockingOf({
    recipients: [],
    recipientFiles: [],
    identityFiles: textsOf(options, "identity"),
    passphraseFile: textOf(options, "passphrase-file"),
    environment,
  });
  const bytes = await openBackupFile(file);
  const progress = progressNote("read", flagOf(options, "json"));
  const folder = textOf(options, "configuration");
  if (flagOf(options, "check") || folder !== undefined) {
    const backup = await StagedBackup.check(bytes, unlocking, progress);
    if (folder === undefined) printContent(options, backup);
    else await restoreConfiguration(options, backup, folder);
    return;
  }
  const staged = await StagedBackup.read(bytes, unlocking, progress);
  try {
    const { config } = await readConfig(flags);
    refuseUnusable(config);
    const restored = await restoreDatabase(staged, config, {
      replace: flagOf(options, "replace"),
      keepSessions: flagOf(options, "keep-sessions"),
      keepTokens: flagOf(options, "keep-tokens"),
      keepCache: flagOf(options, "keep-cache"),
      otherHost: flagOf(options, "other-host"),
    });
    printRestored(options, staged, restored);
  } finally {
    await staged.close();
  }
}

function printContent(options: Options, backup: ReadBackup): void {
  const { header, configuration, key, rows } = backup;
  const variables = Object.keys(configuration?.environment ?? {});
  const content = {
    created_at: header.created_at,
    program: header.program,
    driver: header.driver,
    host_url: header.host_url,
    migrations: header.migrations,
    rows,
    has_key: key !== undefined,
    key_id: header.key_id,
    configuration_file: configuration?.file ?? null,
    variables,
  };
  printResult(options, content, () => {
    printLine(`backup of ${header.created_at}, complete and undamaged`);
    printLine(`made by version ${header.program} from ${header.driver}, for ${header.host_url}`);
    printLine(`rows: ${countsText(rows)}`);
    printLine(
      `encryption key: ${key === undefined ? "not in the backup" : "in the backup"} (id ${header.key_id ?? "none"})`,
    );
    printLine(`configuration: ${configuration?.file ?? "no file"}, ${variables.length} variable(s)`);
  });
}

async function restoreConfiguration(options: Options, backup: ReadBackup, folder: string): Promise<void> {
  const written = await writeConfiguration(backup, resolve(folder), flagOf(options, "replace"));
  printResult(options, { written }, () => {
    for (const path of written) printLine(`wrote ${path}`);
    printLine("The database is not restored yet: check these files, then run 'svc restore' with them.");
  });
  if (backup.key === undefined) {
    noteLine("The backup has no encryption key: add your copy to secrets.env, as SVC_ENCRYPTION_KEY=…");
  }
}

function printRestored(options: Options, { backup }: StagedBackup, restored: Restored): void {
  const { created_at: createdAt } = backup.header;
  const result = {
    created_at: createdAt,
    rows: backup.rows,
    migrated: restored.migrated,
    deleted: restored.deleted,
    ended_sessions: restored.endedSessions,
    ended_tokens: restored.endedTokens,
    valid_tokens: restored.validTokens,
    revoked_again: restored.revocations,
    purged_repositories: restored.purged,
    key_file: restored.keyFile ?? null,
  };
  printResult(options, result, () => {
    if (Object.keys(restored.deleted).length > 0) printLine(`deleted ${countsText(restored.deleted)}`);
    printLine(`restored the backup of ${createdAt}: ${countsText(backup.rows)}`);
    if (restored.migrated.length > 0) printLine(`migrated it: ${restored.migrated.join(", ")}`);
    if (restored.keyFile !== undefined) printLine(`wrote the encryption key to ${restored.keyFile}`);
    if (restored.endedSessions !== undefined) {
      printLine(
        `ended ${restored.endedSessions} session(s): users sign in again (--keep-sessions keeps them)`,
      );
    }
    if (restored.endedTokens !== undefined) {
      printLine(`ended ${restored.endedTokens} token(s): make new ones (--keep-tokens keeps them)`);
    }
    if (restored.revocations > 0) {
      printLine(`revoked ${restored.revocations} token(s) that the deleted database had as revoked`);
    }
    if (restored.purged !== undefined) {
      printLine(`cached data of ${restored.purged} repositories is fetched again (--keep-cache keeps it)`);
    }
  });
  for (const warning of warnings(createdAt, restored)) noteLine(warning);
}

function warnings(
  createdAt: string,
  { endedSessions, endedTokens, validTokens, purged }: Restored,
): string[] {
  return [
    ...(endedSessions === undefined ? [`Sessions that ended after ${createdAt} are valid again.`] : []),
    ...(endedTokens === undefined
      ? [
          `${validTokens} token(s) are valid, also those that were revoked after ${createdAt}. Revoke these again.`,
        ]
      : []),
    ...(purged === undefined ? [`Data that was purged after ${createdAt} may be served again.`] : []),
  ];
}

import { z } from "zod";
import { SvcError } from "../errors.ts";

/*
 * A backup is a file of age (age-encryption.org/v1) that holds gzip of JSON lines, in this order:
 *
 *   {"backup":{…}}          header
 *   {"configuration":{…}}   at most one
 *   {"key":{…}}             at most one
 *   {"table":"users","rows":[{…},…]}   any number; the rows of a table follow each other
 *   {"end":{"rows":{"users":3,…}}}     the last line
 *
 * age detects every changed byte and every missing end. The last line shows that the writer came to its end.
 * docs/svc/backup.md describes the format for users.
 */

/** Word in the header. It tells other files of age from a backup. */
export const FORMAT_NAME = "svc-backup";
/** Greater for a format that earlier programs must not restore. */
export const FORMAT_VERSION = 1;
/** Maximum characters of a line. Lines of rows have some 100 KB, and the configuration some KB. */
export const MAX_LINE_CHARACTERS = 16 * 1024 * 1024;
/** Maximum rows in a line. Each needs memory of several times its size. */
const MAX_ROWS = 10_000;

const names = z.array(z.string().max(200)).max(1000);

const header = z.strictObject({
  format: z.literal(FORMAT_NAME),
  version: z.literal(FORMAT_VERSION),
  /** Version of the program that wrote it. */
  program: z.string().max(100),
  created_at: z.iso.datetime(),
  /** Form of the rows: those of an SQL database. Documents of Vault are read as such rows, too. */
  content: z.literal("sql"),
  /** Kind of the database that it was made from. */
  driver: z.enum(["sqlite", "postgres", "vault"]),
  migrations: names.min(1),
  /** Address of the code host. */
  host_url: z.url({ protocol: /^https?$/ }).max(2000),
  /** Id of the key that secrets in the rows are encrypted with; null: they are not encrypted. */
  key_id: z.string().max(100).nullable(),
});

const hexKey = z.string().regex(/^[0-9a-f]{64}$/);

const configuration = z.strictObject({
  /** Path of the file; null: there was none. */
  file: z.string().max(4096).nullable(),
  text: z.string(),
  /** Variables of the environment that set keys of the configuration. */
  environment: z.record(z.string().regex(/^SVC_[A-Z0-9_]{1,200}$/), z.string()),
});

const key = z.strictObject({
  current: hexKey,
  previous: hexKey.nullable(),
});

const row = z.record(z.string().max(200), z.union([z.string(), z.number(), z.null()]));

const table = z.string().regex(/^[a-z_]{1,100}$/);

export type BackupHeader = Readonly<z.output<typeof header>>;
export type BackupConfiguration = Readonly<z.output<typeof configuration>>;
export type BackupKey = Readonly<z.output<typeof key>>;
export type BackupRow = Readonly<z.output<typeof row>>;

const line = z.union([
  z.strictObject({ backup: header }),
  z.strictObject({ configuration }),
  z.strictObject({ key }),
  z.strictObject({ table, rows: z.array(row).max(MAX_ROWS) }),
  z.strictObject({ end: z.strictObject({ rows: z.record(table, z.int().min(0)) }) }),
]);

/** A line of a backup. */
export type BackupLine = z.output<typeof line>;

/** @throws SvcError `backup_refused`, without any content of the line */
export function parseBackupLine(text: string, number: number): BackupLine {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message would quote the content.
    throw refusedBackup(number === 1 ? NOT_A_BACKUP : `line ${number} is not JSON`);
  }
  if (number === 1) refuseOtherFormat(value);
  const parsed = line.safeParse(value);
  if (parsed.success) return parsed.data;
  throw refusedBackup(`line ${number} does not have the form of a backup`);
}

const NOT_A_BACKUP = "it is encrypted with age, but its content is not a backup";

function refuseOtherFormat(value: unknown): void {
  const { backup } = Object(value) as { backup?: { format?: unknown; version?: unknown } };
  const { format, version } = Object(backup) as { format?: unknown; version?: unknown };
  if (format !== FORMAT_NAME) throw refusedBackup(NOT_A_BACKUP);
  if (typeof version === "number" && version > FORMAT_VERSION) {
    throw new SvcError(
      "backup_refused",
      `Cannot restore the backup: its format ${version} is newer than this program`,
      {
        hint: "Install the version of the program that wrote it, or a later one.",
      },
    );
  }
}

/** @param reason continues "Cannot read the backup: " */
export function refusedBackup(reason: string): SvcError {
  return new SvcError("backup_refused", `Cannot read the backup: ${reason}`, {
    hint: "Nothing was changed. Use another backup, or copy the file again.",
  });
}

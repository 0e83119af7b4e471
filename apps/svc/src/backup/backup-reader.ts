import { pipeline, type Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { createGunzip, type Gunzip } from "node:zlib";
import { SvcError } from "../errors.ts";
import {
  MAX_LINE_CHARACTERS,
  parseBackupLine,
  refusedBackup,
  type BackupConfiguration,
  type BackupHeader,
  type BackupKey,
  type BackupRow,
} from "./backup-format.ts";
import { damaged, decrypted, type Unlocking } from "./encryption.ts";

/** Maximum growth by unpacking: rows of a database reach 20. A file that was made to fill a disk reaches 1,000. */
const MAX_GROWTH = 200;
/** Bytes of unpacked data before that counts. */
const FREE_BYTES = 16 * 1024 * 1024;

/** Receiver of a backup, in the order of the file. */
export interface BackupVisitor {
  header(header: BackupHeader): Promise<void>;
  rows(table: string, rows: readonly BackupRow[]): Promise<void>;
}

/** Everything of a backup but its rows. */
export interface ReadBackup {
  readonly header: BackupHeader;
  readonly configuration: BackupConfiguration | undefined;
  readonly key: BackupKey | undefined;
  /** Rows by table. */
  readonly rows: Readonly<Record<string, number>>;
}

/**
 * Reads a backup to its end, once. Memory does not grow with the size of the file, also of one that somebody made to do harm.
 *
 * @throws SvcError `backup_refused`, `backup_locked`. The visitor must then undo what it did
 */
export async function readBackup(
  file: Readable,
  unlocking: Unlocking,
  visitor: BackupVisitor,
): Promise<ReadBackup> {
  try {
    return await readZipped(await decrypted(unlocking, file), visitor);
  } finally {
    // A pipe that stays open would keep the process until its writer ends.
    file.destroy();
  }
}

async function readZipped(zipped: Readable, visitor: BackupVisitor): Promise<ReadBackup> {
  const unzipped = createGunzip();
  // An error of one reaches the other, and so the reader of the lines.
  pipeline(zipped, unzipped, () => undefined);
  try {
    return await readLines(linesOf(unzipped), visitor);
  } catch (error) {
    if (error instanceof VisitorError) throw error.cause;
    throw error instanceof SvcError ? error : damaged(error);
  } finally {
    unzipped.destroy();
    zipped.destroy();
  }
}

async function readLines(lines: AsyncIterable<string>, visitor: BackupVisitor): Promise<ReadBackup> {
  let header: BackupHeader | undefined;
  let configuration: BackupConfiguration | undefined;
  let key: BackupKey | undefined;
  let end: Readonly<Record<string, number>> | undefined;
  let last: string | undefined;
  const rows: Record<string, number> = {};
  let number = 0;
  for await (const text of lines) {
    const line = parseBackupLine(text, ++number);
    if (end !== undefined) throw refusedBackup("there are lines after its end");
    if (header === undefined) {
      if (!("backup" in line)) throw refusedBackup("it does not begin with its header");
      header = line.backup;
      await visited(visitor.header(header));
    } else if ("table" in line) {
      const { table } = line;
      if (table !== last && rows[table] !== undefined) throw refusedBackup(`table ${table} is there twice`);
      last = table;
      rows[table] = (rows[table] ?? 0) + line.rows.length;
      await visited(visitor.rows(table, line.rows));
    } else if ("end" in line) {
      end = line.end.rows;
    } else if ("configuration" in line && configuration === undefined && last === undefined) {
      ({ configuration } = line);
    } else if ("key" in line && key === undefined && last === undefined) {
      ({ key } = line);
    } else {
      throw refusedBackup(`line ${number} is in the wrong place`);
    }
  }
  if (header === undefined || end === undefined) throw refusedBackup("it has no end");
  const tables = new Set([...Object.keys(end), ...Object.keys(rows)]);
  for (const table of tables) {
    if (end[table] !== rows[table]) throw refusedBackup(`rows of table ${table} are missing`);
  }
  return { header, configuration, key, rows };
}

/** Error of the visitor, such as a full disk. All other errors are about the file. */
class VisitorError extends Error {}

async function visited(visit: Promise<void>): Promise<void> {
  try {
    await visit;
  } catch (cause) {
    throw new VisitorError("the visitor failed", { cause });
  }
}

async function* linesOf(bytes: Gunzip): AsyncGenerator<string> {
  const decoder = new StringDecoder("utf8");
  let pending: string[] = [];
  let size = 0;
  let unzipped = 0;
  for await (const chunk of bytes as AsyncIterable<Buffer>) {
    unzipped += chunk.length;
    if (unzipped > FREE_BYTES + MAX_GROWTH * bytes.bytesWritten) {
      throw refusedBackup(`it becomes more than ${MAX_GROWTH} times larger when it is unpacked`);
    }
    const parts = decoder.write(chunk).split("\n");
    const rest = parts.pop() ?? "";
    for (const part of parts) {
      yield pending.join("") + part;
      pending = [];
      size = 0;
    }
    pending.push(rest);
    size += rest.length;
    if (size > MAX_LINE_CHARACTERS) throw refusedBackup("it has a line that is too long");
  }
  if (size > 0) throw refusedBackup("it has no end");
}

import type { Kysely } from "kysely";
import { CONTENT_TABLES } from "../storage/sql/content.ts";
import type { Tables } from "../storage/rows/tables.ts";
import { refusedBackup, type BackupRow } from "./backup-format.ts";

interface ColumnForm {
  readonly isText: boolean;
  readonly isNullable: boolean;
  readonly isRequired: boolean;
}

/** Columns of a table, by name. */
export type TableForm = ReadonlyMap<string, ColumnForm>;

/** Columns whose text is JSON. The service could not read such a row. */
const JSON_COLUMNS: Readonly<Record<string, readonly string[]>> = {
  tokens: ["repositories", "scopes", "ip_allow"],
  audit: ["details"],
};

/** Forms of the tables that backups have, at the state of migration of this database. */
export async function tableForms(db: Kysely<Tables>): Promise<ReadonlyMap<string, TableForm>> {
  const tables = await db.introspection.getTables();
  const known = new Set<string>(CONTENT_TABLES.map(({ name }) => name));
  return new Map(
    tables
      .filter(({ name }) => known.has(name))
      .map(({ name, columns }) => [
        name,
        new Map(
          columns.map((column) => [
            column.name,
            {
              isText: column.dataType.toLowerCase() === "text",
              isNullable: column.isNullable,
              isRequired: !column.isNullable && !column.hasDefaultValue,
            },
          ]),
        ),
      ]),
  );
}

/** @throws SvcError `backup_refused`: its table cannot hold the row */
export function checkRow(table: string, form: TableForm, row: BackupRow): void {
  for (const [column, value] of Object.entries(row)) {
    const known = form.get(column);
    const fits =
      known !== undefined &&
      (value === null ? known.isNullable : known.isText ? isText(value) : Number.isSafeInteger(value));
    if (!fits) throw refusedBackup(`table ${table} has a row with a wrong value of ${column.slice(0, 40)}`);
  }
  for (const [column, { isRequired }] of form) {
    if (isRequired && row[column] === undefined) {
      throw refusedBackup(`table ${table} has a row without ${column}`);
    }
  }
  for (const column of JSON_COLUMNS[table] ?? []) {
    const text = row[column];
    if (typeof text === "string" && !isJson(text)) {
      throw refusedBackup(`table ${table} has a row with a wrong value of ${column}`);
    }
  }
}

/** Postgres has no text with the character 0. */
function isText(value: unknown): boolean {
  return typeof value === "string" && !value.includes("\0");
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

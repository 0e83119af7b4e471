import type { Generated } from "kysely";
import type { AuditActor } from "../../audit/audit-event.ts";
import type { AuditRecord } from "../../audit/audit-store.ts";
import type { ChangeTopic, ManifestPointer, SharedFetchState } from "../coordination-store.ts";
import type {
  AppRecord,
  CachedRepositoryRecord,
  OneTimeRecord,
  SessionRecord,
  TokenRecord,
  UserRecord,
} from "../store.ts";

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name;

/** Type of a column. Flags are 0 or 1, and lists are JSON text, because every SQL database has these types. */
type Column<Value> = Value extends undefined
  ? null
  : Value extends boolean
    ? number
    : Value extends string | number
      ? Value
      : string;

/** Row of a record: `createdAt` is in the column `created_at`. */
export type Row<Fields> = {
  [Name in keyof Fields & string as SnakeCase<Name>]: Column<Fields[Name]>;
};

/** Tables as kysely sees them. */
export interface Tables {
  /** `key` is `owner/name` in lower case. It is unique, and lists are in its order. */
  cached_repositories: Row<CachedRepositoryRecord> & { key: string };
  /** `credential` is sealed by SecretBox for `users/<id>`. */
  users: Row<UserRecord> & { login_key: string; credential: string | null; credential_at: number | null };
  sessions: Row<SessionRecord>;
  tokens: Row<TokenRecord>;
  /** The secrets are sealed by SecretBox for `apps/<id>/private_key` and `apps/<id>/webhook_secret`. */
  apps: Row<AppRecord>;
  /** `value` is sealed by SecretBox for `one_time/<kind>/<key>`. */
  one_time: Row<OneTimeRecord>;
  /** `expires_at` is by the clock of the database; 0: released. `fence` is 0 if an earlier version acquired it. */
  leases: { name: string; holder: string; expires_at: number; fence: Generated<number> };
  repository_epochs: { key: string; epoch: number };
  changes: { topic: ChangeTopic; count: number };
  /** Times are by the clock of the database. `figures` is JSON. */
  instances: {
    id: string;
    host_name: string;
    version: string;
    ready: number;
    started_at: number;
    reported_at: number;
    figures: string | null;
    figures_at: number | null;
    address: string | null;
    manifest_key_id: string | null;
    settings_digests: string | null;
  };
  /** Times are by the clock of the database. */
  shared_fetches: {
    key: string;
    holder: string;
    fence: number;
    state: SharedFetchState;
    bytes: number;
    expected_bytes: number | null;
    is_awaited: number;
    started_at: number;
    expires_at: number;
  };
  manifest_pointers: ManifestPointer & { key: string };
  /** The keys are the login and the target in lower case. Queries compare them. */
  audit: Row<Required<Omit<AuditRecord, "actor">>> & {
    actor_kind: AuditActor["kind"];
    actor_login: string | null;
    actor_key: string | null;
    credential_id: string | null;
    target_key: string | null;
  };
}

/** Columns of fields. It has as many entries as the tables have columns. */
const COLUMNS = new Map<string, string>();

/** The row of a record. Each field has a column. */
export function toRow<Fields extends object>(record: Fields): Row<Fields> {
  const row: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(record)) {
    const column = COLUMNS.getOrInsertComputed(name, (field) =>
      field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    );
    row[column] = columnValue(value);
  }
  return row as Row<Fields>;
}

function columnValue(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value === "boolean") return value ? 1 : 0;
  return typeof value === "object" ? JSON.stringify(value) : value;
}

/**
 * A reader of rows of one table. It finds out once what each column becomes.
 * @param types fields that are not numbers or plain text
 * @returns the record of a row, `undefined` where a column is null
 */
export function rowReader<Fields>(
  types: { readonly flags?: readonly (keyof Fields)[]; readonly json?: readonly (keyof Fields)[] } = {},
): (row: Row<Fields>) => Fields {
  const readings = new Map<string, { name: keyof Fields; isFlag: boolean; isJson: boolean }>();
  const readingOf = (column: string): { name: keyof Fields; isFlag: boolean; isJson: boolean } => {
    const name = column.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()) as keyof Fields;
    return {
      name,
      isFlag: types.flags?.includes(name) ?? false,
      isJson: types.json?.includes(name) ?? false,
    };
  };
  return (row) => {
    const record: Partial<Record<keyof Fields, unknown>> = {};
    const values = row as Record<string, unknown>;
    for (const column of Object.keys(values)) {
      const { name, isFlag, isJson } = readings.getOrInsertComputed(column, readingOf);
      record[name] = fieldValue(values[column], isFlag, isJson);
    }
    return record as Fields;
  };
}

function fieldValue(value: unknown, isFlag: boolean, isJson: boolean): unknown {
  if (value === null) return undefined;
  if (isFlag) return value !== 0;
  return isJson ? (JSON.parse(value as string) as unknown) : value;
}

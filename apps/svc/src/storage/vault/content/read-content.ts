import { Secret } from "@devplat/base";
import { SvcError } from "../../../errors.ts";
import type { ContentRow, DatabaseContent, TableRows } from "../../database-content.ts";
import type { SecretBox } from "../../secret-box.ts";
import { MIGRATION_NAMES } from "../../sql/migrations.ts";
import { appRow, auditRow, credentialPlace, repositoryRow } from "../../rows/records.ts";
import { toRow } from "../../rows/tables.ts";
import type { ManifestPointer } from "../../coordination-store.ts";
import type {
  AppRecord,
  CachedRepositoryRecord,
  SessionRecord,
  TokenRecord,
  UserRecord,
} from "../../store.ts";
import { appOf, PATH as APPS, type AppsDocument } from "../apps.ts";
import type { Batch } from "../audit.ts";
import { batches } from "../batches.ts";
import type { OwnerDocument as RepositoriesDocument } from "../cached-repositories.ts";
import type { OwnerDocument as EpochsDocument } from "../coordination/epochs.ts";
import type { Stored, VaultKv } from "../kv.ts";
import type { UserDocument } from "../users.ts";

/** A table of a backup, and the documents that have its rows. */
interface DocumentTable {
  readonly table: string;
  /** Folder of the documents, or the one document. */
  readonly place: string;
  readonly rows: (stored: Stored<never>, name: string, box: SecretBox) => readonly object[];
}

/** Fields that a document may lack, because JSON has no undefined. Rows of a table have all columns. */
const NO_USER = { hostUserId: undefined, lastLoginAt: undefined } satisfies Partial<UserRecord>;
const NO_REPOSITORY = {
  timeoutSeconds: undefined,
  maxCacheSizeMb: undefined,
  seed: undefined,
  bundles: undefined,
} satisfies Partial<CachedRepositoryRecord>;
const NO_APP = { ownerLogin: undefined, clientId: undefined } satisfies Partial<AppRecord>;
const NO_SESSION = {
  name: undefined,
  createdIp: undefined,
  userAgent: undefined,
  lastSeenAt: undefined,
  mintedBy: undefined,
} satisfies Partial<SessionRecord>;
const NO_TOKEN = {
  description: undefined,
  sessionId: undefined,
  appId: undefined,
  installation: undefined,
  requestsPerMinute: undefined,
  mintedBy: undefined,
  expiresAt: undefined,
  revokedAt: undefined,
  lastUsedAt: undefined,
  lastIp: undefined,
} satisfies Partial<TokenRecord>;

/** Tables in the order of a backup of an SQL database, whose rows these are. */
const TABLES: readonly DocumentTable[] = [
  { table: "users", place: "users", rows: userRows },
  {
    table: "sessions",
    place: "sessions",
    rows: ({ value }: Stored<SessionRecord>) => [toRow({ ...NO_SESSION, ...value })],
  },
  {
    table: "tokens",
    place: "tokens",
    rows: ({ value }: Stored<TokenRecord>) => [toRow({ ...NO_TOKEN, ...value })],
  },
  {
    table: "cached_repositories",
    place: "cached-repositories",
    rows: ({ value }: Stored<RepositoriesDocument>) =>
      value.records.map((record) => repositoryRow({ ...NO_REPOSITORY, ...record })),
  },
  {
    table: "apps",
    place: APPS,
    rows: ({ value }: Stored<AppsDocument>, _name, box) =>
      value.apps.map((entry) => appRow({ ...NO_APP, ...appOf(entry) }, box)),
  },
  {
    table: "repository_epochs",
    place: "epochs",
    rows: ({ value }: Stored<EpochsDocument>) =>
      Object.entries(value.epochs).map(([key, epoch]) => ({ key, epoch })),
  },
  {
    table: "manifest_pointers",
    place: "manifest-pointers",
    rows: ({ value }: Stored<ManifestPointer>, name) => [
      { key: Buffer.from(name, "base64url").toString(), ...value },
    ],
  },
  {
    table: "audit",
    place: "audit",
    rows: ({ value }: Stored<Batch>) => value.records.map(auditRow),
  },
];

/**
 * Reads the documents as of one moment, as rows of an SQL database. Vault has no snapshots, but keeps earlier versions of a
 * document and the times of all: of a document that has changed since the moment, the version of that time is read.
 *
 * @param box encrypts secrets, which Vault gives as plain text
 */
export async function readVaultContent<T>(
  kv: VaultKv,
  box: SecretBox,
  use: (content: DatabaseContent) => Promise<T>,
): Promise<T> {
  const moment = await kv.moment();
  return use({ migrations: MIGRATION_NAMES, tables: tableRows(kv, box, moment) });
}

async function* tableRows(kv: VaultKv, box: SecretBox, moment: number): AsyncGenerator<TableRows> {
  for (const { table, place, rows } of TABLES) {
    for await (const paths of batches(place === APPS ? [place] : kv.paths(place))) {
      const found = await Promise.all(
        paths.map(async (path) => {
          const stored = await readAsOf(kv, path, moment);
          return stored === undefined ? [] : rows(stored, path.slice(path.lastIndexOf("/") + 1), box);
        }),
      );
      const all = found.flat() as readonly ContentRow[];
      if (all.length > 0) yield { table, rows: all };
    }
  }
}

/** The document at that moment. Undefined: it was not there, or was marked as removed. */
async function readAsOf(kv: VaultKv, path: string, moment: number): Promise<Stored<never> | undefined> {
  let stored = await kv.read<never>(path);
  while (stored !== undefined && stored.writtenAt > moment) {
    const { version } = stored;
    if (version === 1) return undefined;
    stored = await kv.read<never>(path, version - 1);
    if (stored === undefined) throw forgotten();
  }
  return stored === undefined || stored.value === null ? undefined : stored;
}

function forgotten(): SvcError {
  return new SvcError(
    "database_unavailable",
    "Cannot back up the database: a record changed so often during the backup that Vault has forgotten its version of the beginning",
    {
      remedy: "retry",
      hint: "Run the backup again. Let the mount keep 10 versions or more (max_versions).",
    },
  );
}

function userRows(stored: Stored<UserDocument>, _name: string, box: SecretBox): readonly object[] {
  const { credential, ...user } = stored.value;
  return [
    {
      ...toRow({ ...NO_USER, ...user }),
      login_key: user.login.toLowerCase(),
      credential:
        credential === undefined ? null : box.seal(new Secret(credential), credentialPlace(user.id)),
      credential_at: credential === undefined ? null : stored.writtenAt,
    },
  ];
}

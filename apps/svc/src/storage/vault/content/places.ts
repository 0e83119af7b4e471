import { credentialPlace, userOf } from "../../rows/records.ts";
import type { Tables } from "../../rows/tables.ts";
import type { SecretBox } from "../../secret-box.ts";
import type { AuditRecord } from "../../../audit/audit-store.ts";
import type { CachedRepositoryRecord, SessionRecord, TokenRecord } from "../../store.ts";
import { folderOf } from "../audit.ts";
import { documentOf } from "../cached-repositories.ts";
import { epochsPath } from "../coordination/epochs.ts";
import { pointerPath } from "../coordination/manifest-pointers.ts";
import { tokenListPaths } from "../tokens.ts";
import { hostIdPath, loginPath, userPath } from "../users.ts";

/*
 * Documents of the rows of a backup. Their paths come from the rows, so a restore that is repeated writes the same documents.
 */

/** A document of Vault. */
export interface PlacedDocument {
  readonly path: string;
  readonly value: unknown;
}

/** Folders of what a backup has. */
export const CONTENT_FOLDERS: readonly string[] = [
  "users",
  "sessions",
  "tokens",
  "cached-repositories",
  "epochs",
  "manifest-pointers",
  "audit",
];
/** Folders of names that lead to it, and of pending sign-ins. */
export const DERIVED_FOLDERS: readonly string[] = [
  "user-logins",
  "user-host-ids",
  "session-ids",
  "token-ids",
  "token-times",
  "user-token-times",
  "session-token-times",
  "one-time",
];

/** Maximum characters of the audit records of one document. Vault takes some 500 KB at least. */
const MAX_AUDIT_CHARACTERS = 128 * 1024;

/** @param box opens the credential, which is plain text in Vault */
export function userDocuments(row: Tables["users"], box: SecretBox): readonly PlacedDocument[] {
  const { login_key: _key, credential_at: _at, credential, ...columns } = row;
  const user = userOf(columns);
  const { id, login, hostUserId } = user;
  const opened =
    credential === null ? {} : { credential: box.open(credential, credentialPlace(id)).reveal() };
  return [
    { path: loginPath(login), value: { id } },
    ...(hostUserId === undefined ? [] : [{ path: hostIdPath(hostUserId), value: { id } }]),
    { path: userPath(id), value: { ...user, ...opened } },
  ];
}

export function sessionDocuments(session: SessionRecord): readonly PlacedDocument[] {
  const { id, tokenHash } = session;
  return [
    { path: sessionIdPath(id), value: { hash: tokenHash } },
    { path: `sessions/${tokenHash}`, value: session },
  ];
}

export function sessionIdPath(id: string): string {
  return `session-ids/${id}`;
}

/** Names that lead to the document of a token. */
export function tokenNames(token: TokenRecord): readonly PlacedDocument[] {
  const value = { hash: token.tokenHash };
  return [...tokenListPaths(token), `token-ids/${token.id}`].map((path) => ({ path, value }));
}

export function tokenPath({ tokenHash }: TokenRecord): string {
  return `tokens/${tokenHash}`;
}

export function pointerDocument({ key, ...pointer }: Tables["manifest_pointers"]): PlacedDocument {
  return { path: pointerPath(key), value: pointer };
}

/** One document for each owner. @param records all repositories */
export function repositoryDocuments(records: readonly CachedRepositoryRecord[]): readonly PlacedDocument[] {
  return [...Map.groupBy(records, documentOf)].map(([path, ofOwner]) => ({
    path,
    value: { records: ofOwner },
  }));
}

/** One document for each owner. @param epochs those of all repositories, by key */
export function epochDocuments(epochs: ReadonlyMap<string, number>): readonly PlacedDocument[] {
  return [...Map.groupBy(epochs, ([key]) => epochsPath(key))].map(([path, entries]) => ({
    path,
    value: { epochs: Object.fromEntries(entries) },
  }));
}

/** Documents with records of one hour each. They are named by their first record. */
export function auditDocuments(records: readonly AuditRecord[]): readonly PlacedDocument[] {
  return [...Map.groupBy(records, ({ at }) => folderOf(at))].flatMap(([folder, ofHour]) =>
    limitedGroups(ofHour).map((group) => ({ path: `${folder}/${group[0].id}`, value: { records: group } })),
  );
}

/** Groups of at most {@link MAX_AUDIT_CHARACTERS}, or of one record. */
function limitedGroups(records: readonly AuditRecord[]): readonly [AuditRecord, ...AuditRecord[]][] {
  const groups: [AuditRecord, ...AuditRecord[]][] = [];
  let characters = 0;
  for (const record of records) {
    const added = JSON.stringify(record).length;
    const last = groups.at(-1);
    if (last === undefined || characters + added > MAX_AUDIT_CHARACTERS) {
      groups.push([record]);
      characters = added;
    } else {
      last.push(record);
      characters += added;
    }
  }
  return groups;
}

import { randomUUID } from "node:crypto";
import { systemClock } from "@devplat/base";
import { SvcError } from "../../../errors.ts";
import { appliedMigrations, MIGRATIONS, FORM, RESTORING, type FormDocument } from "../form.ts";
import type { ContentRow, NewContent, Replaced } from "../../database-content.ts";
import { refuseAhead } from "../../migration-state.ts";
import { higherEpochs, refuseContent } from "../../replacement.ts";
import { refuseRunningInstances } from "../../running-instances.ts";
import type { SecretBox } from "../../secret-box.ts";
import {
  appOf,
  auditRecordOf,
  credentialPlace,
  repositoryOf,
  sessionOf,
  tokenOf,
  userOf,
} from "../../rows/records.ts";
import type { Tables } from "../../rows/tables.ts";
import type { AppRecord, CachedRepositoryRecord, TokenRecord } from "../../store.ts";
import { entryOf, PATH as APPS } from "../apps.ts";
import { folderOf } from "../audit.ts";
import { documentOf } from "../cached-repositories.ts";
import { counted } from "../coordination/changes.ts";
import { epochsPath, vaultEpochs } from "../coordination/epochs.ts";
import { vaultInstances } from "../coordination/instances.ts";
import { vaultLeases } from "../coordination/leases.ts";
import { pointerPath } from "../coordination/manifest-pointers.ts";
import { CONCURRENT_READS, type VaultKv } from "../kv.ts";
import { tokenListPaths } from "../tokens.ts";
import { hostIdPath, loginPath, userPath } from "../users.ts";

/** Folders of what a backup has. */
const COUNTED = [
  "users",
  "sessions",
  "tokens",
  "cached-repositories",
  "epochs",
  "manifest-pointers",
  "audit",
];
/** Folders of names that lead to it, and of pending sign-ins. */
const DERIVED = [
  "user-logins",
  "user-host-ids",
  "session-ids",
  "token-ids",
  "token-times",
  "user-token-times",
  "session-token-times",
  "one-time",
];
const RESTORE_LEASE = "restore";
/** A restore that was ended keeps others from the database for so long. A slow request to Vault must be shorter. */
const LEASE_MS = 15_000;
const RENEW_MS = 5000;
/** Characters of the audit records of one document. Vault takes some 500 KB at least. */
const MAX_AUDIT_CHARACTERS = 128 * 1024;

/**
 * @returns documents of the content that it has, by folder
 * @throws SvcError `database_in_use`, `database_not_empty`, `database_ahead`
 */
export async function refuseVaultReplacement(kv: VaultKv, replace: boolean): Promise<Replaced["deleted"]> {
  const applied = await appliedMigrations(kv);
  const known: readonly string[] = [...MIGRATIONS, RESTORING];
  refuseAhead({ applied, pending: [], unknown: applied.filter((name) => !known.includes(name)) });
  await refuseRunningInstances(vaultInstances(kv));
  const found: Record<string, number> = {};
  for (const folder of COUNTED) {
    let count = 0;
    for await (const _ of kv.paths(folder)) count++;
    if (count > 0) found[folder.replaceAll("-", "_")] = count;
  }
  if ((await kv.read(APPS)) !== undefined) found[APPS] = 1;
  // Leftovers of a restore that did not end are not content.
  if (!replace && !applied.includes(RESTORING)) refuseContent(found);
  return found;
}

/**
 * Puts rows in place of what Vault has. Vault has no transactions: until the end the form document has a mark with which no
 * program starts. A restore that was ended in the middle is run again. It finds revocations and epochs of the former content in
 * the documents that it left.
 *
 * @param box opens the secrets of the rows
 */
export async function replaceVaultContent(
  kv: VaultKv,
  content: NewContent,
  box: SecretBox,
): Promise<Replaced> {
  const leases = vaultLeases(kv);
  const lease = await leases.acquire(RESTORE_LEASE, randomUUID(), LEASE_MS);
  if (lease === undefined)
    throw inUse(`Another restore writes, or was ended less than ${LEASE_MS / 1000} seconds ago.`);
  try {
    const deleted = await refuseVaultReplacement(kv, content.replace);
    const renew = async (): Promise<void> => {
      if (!(await leases.renew(lease, LEASE_MS))) throw inUse("Another restore began. Run it again.");
    };
    // The count of a large database may outlast the lease.
    await renew();
    await mark(kv);
    const restore = new VaultRestore(kv, content, { box, renew });
    await restore.write();
    await restore.removeOthers();
    for (const topic of ["repositories", "epochs"] as const)
      await counted(kv, topic, () => Promise.resolve());
    await renew();
    await kv.change<FormDocument>(FORM, () => ({ applied: [...MIGRATIONS] }));
    return { deleted, revocations: restore.revocations, validTokens: restore.validTokens };
  } finally {
    await leases.release(lease);
  }
}

/**
 * Keeps all programs from starting with the database. An instance that starts reports first, and reads the form then. So either
 * it finds the mark, or the list here has it.
 */
async function mark(kv: VaultKv): Promise<void> {
  let former: FormDocument = { applied: [] };
  await kv.change<FormDocument>(FORM, (form) => {
    former = form ?? former;
    return { applied: [RESTORING] };
  });
  try {
    await refuseRunningInstances(vaultInstances(kv));
  } catch (error) {
    await kv.change<FormDocument>(FORM, () => former);
    throw error;
  }
}

function inUse(hint: string): SvcError {
  return new SvcError("database_in_use", "Cannot restore: another restore uses the database", { hint });
}

interface RestoreParts {
  readonly box: SecretBox;
  /** Extends the lease of this restore. It fails if another restore has it. */
  readonly renew: () => Promise<void>;
}

/** Writes the documents of a restore. */
class VaultRestore {
  readonly #kv: VaultKv;
  readonly #content: NewContent;
  readonly #box: SecretBox;
  readonly #renew: () => Promise<void>;
  #renewedAt = systemClock.monotonic();
  readonly #written = new Set<string>();
  readonly #repositories: CachedRepositoryRecord[] = [];
  readonly #apps: AppRecord[] = [];
  revocations = 0;
  validTokens = 0;

  constructor(kv: VaultKv, content: NewContent, { box, renew }: RestoreParts) {
    this.#kv = kv;
    this.#content = content;
    this.#box = box;
    this.#renew = renew;
  }

  async write(): Promise<void> {
    for await (const { table, rows } of this.#content.tables) {
      for (let start = 0; start < rows.length; start += CONCURRENT_READS) {
        await this.#stayOnly();
        const some = rows.slice(start, start + CONCURRENT_READS);
        if (table === "audit") await this.#writeAudit(some as unknown as readonly Tables["audit"][]);
        else await Promise.all(some.map(async (row) => this.#writeRow(table, row)));
      }
    }
    const owners = Map.groupBy(this.#repositories, documentOf);
    for (const [path, records] of owners) await this.#put(path, { records });
    if (this.#apps.length > 0) await this.#put(APPS, { apps: this.#apps.map(entryOf) });
    await this.#writeEpochs();
  }

  /** Removes the documents that this restore did not write. */
  async removeOthers(): Promise<void> {
    for (const folder of [...COUNTED, ...DERIVED]) {
      for await (const path of this.#kv.paths(folder)) {
        await this.#stayOnly();
        if (!this.#written.has(path)) await this.#kv.remove(path);
      }
    }
    if (!this.#written.has(APPS)) await this.#kv.remove(APPS);
  }

  async #stayOnly(): Promise<void> {
    if (systemClock.monotonic() - this.#renewedAt < RENEW_MS) return;
    await this.#renew();
    this.#renewedAt = systemClock.monotonic();
  }

  async #writeRow(table: string, row: ContentRow): Promise<void> {
    switch (table) {
      case "users":
        return this.#writeUser(row as unknown as Tables["users"]);
      case "sessions":
        return this.#writeSession(row as unknown as Tables["sessions"]);
      case "tokens":
        return this.#writeToken(tokenOf(row as unknown as Tables["tokens"]));
      case "cached_repositories":
        this.#repositories.push(repositoryOf(row as unknown as Tables["cached_repositories"]));
        return;
      case "apps":
        this.#apps.push(appOf(row as unknown as Tables["apps"], this.#box));
        return;
      case "manifest_pointers": {
        const { key, ...pointer } = row as unknown as Tables["manifest_pointers"];
        return this.#put(pointerPath(key), pointer);
      }
      case "repository_epochs":
        return;
      default:
        throw new SvcError("backup_refused", `Cannot restore the table ${table} into Vault`);
    }
  }

  async #writeUser(row: Tables["users"]): Promise<void> {
    const { login_key: _key, credential_at: _at, credential, ...columns } = row;
    const user = userOf(columns);
    const { id, login, hostUserId } = user;
    await this.#put(loginPath(login), { id });
    if (hostUserId !== undefined) await this.#put(hostIdPath(hostUserId), { id });
    const opened =
      credential === null ? {} : { credential: this.#box.open(credential, credentialPlace(id)).reveal() };
    await this.#put(userPath(id), { ...user, ...opened });
  }

  async #writeSession(row: Tables["sessions"]): Promise<void> {
    const session = sessionOf(row);
    await this.#put(`session-ids/${session.id}`, { hash: session.tokenHash });
    await this.#put(`sessions/${session.tokenHash}`, session);
    if (session.kind === "administration" && session.expiresAt > this.#content.now) this.validTokens++;
  }

  /** A token that the former content has as revoked stays so. */
  async #writeToken(token: TokenRecord): Promise<void> {
    const hash = { hash: token.tokenHash };
    for (const path of [...tokenListPaths(token), `token-ids/${token.id}`]) await this.#put(path, hash);
    const path = `tokens/${token.tokenHash}`;
    this.#written.add(path);
    let stored = token;
    await this.#kv.change<TokenRecord | null>(path, (former) => {
      stored = { ...token, revokedAt: token.revokedAt ?? former?.revokedAt };
      return stored;
    });
    const isValid = ({ revokedAt, expiresAt = Infinity }: TokenRecord): boolean =>
      revokedAt === undefined && expiresAt > this.#content.now;
    if (isValid(stored)) this.validTokens++;
    else if (isValid(token)) this.revocations++;
  }

  /** Records of one hour are in documents that are named by their first record, so that a repetition writes the same ones. */
  async #writeAudit(rows: readonly Tables["audit"][]): Promise<void> {
    const hours = Map.groupBy(rows.map(auditRecordOf), ({ at }) => folderOf(at));
    for (const [folder, records] of hours) {
      for (let rest = records; rest.length > 0;) {
        let count = 1;
        while (count < rest.length && JSON.stringify(rest.slice(0, count + 1)).length <= MAX_AUDIT_CHARACTERS)
          count++;
        await this.#put(`${folder}/${rest[0]?.id}`, { records: rest.slice(0, count) });
        rest = rest.slice(count);
      }
    }
  }

  async #writeEpochs(): Promise<void> {
    const { epochs, raiseEpochs } = this.#content;
    const present = await vaultEpochs(this.#kv).all();
    const next = higherEpochs(present, epochs, raiseEpochs ? await this.#kv.now() : undefined);
    for (const [path, entries] of Map.groupBy(next, ([key]) => epochsPath(key)))
      await this.#put(path, { epochs: Object.fromEntries(entries) });
  }

  async #put(path: string, value: unknown): Promise<void> {
    this.#written.add(path);
    await this.#kv.change<unknown>(path, () => value);
  }
}

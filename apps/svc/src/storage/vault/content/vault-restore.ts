import { SvcError } from "../../../errors.ts";
import type { ContentRow, NewContent, TableRows } from "../../database-content.ts";
import { higherEpochs } from "../../replacement.ts";
import { appOf, auditRecordOf, repositoryOf, sessionOf, tokenOf } from "../../rows/records.ts";
import type { Tables } from "../../rows/tables.ts";
import type { SecretBox } from "../../secret-box.ts";
import type { AppRecord, CachedRepositoryRecord, SessionRecord, TokenRecord } from "../../store.ts";
import { entryOf, PATH as APPS } from "../apps.ts";
import { inBatches } from "../batches.ts";
import { vaultEpochs } from "../coordination/epochs.ts";
import type { VaultKv } from "../kv.ts";
import { endedAdministrationTokens } from "./ended-administration.ts";
import {
  auditDocuments,
  CONTENT_FOLDERS,
  DERIVED_FOLDERS,
  epochDocuments,
  pointerDocument,
  repositoryDocuments,
  sessionDocuments,
  tokenNames,
  tokenPath,
  userDocuments,
  type PlacedDocument,
} from "./places.ts";

export interface VaultRestoreParts {
  readonly kv: VaultKv;
  readonly content: NewContent;
  /** Opens the secrets of the rows. */
  readonly box: SecretBox;
  /** Keeps other restores from the database. It fails if another one has begun. */
  readonly keepLease: () => Promise<void>;
}

/** Writes the documents of a restore. */
export class VaultRestore {
  readonly #parts: VaultRestoreParts;
  readonly #written = new Set<string>();
  readonly #repositories: CachedRepositoryRecord[] = [];
  readonly #apps: AppRecord[] = [];
  /** Undefined: not looked for yet. */
  #endedAdministration: ReadonlySet<string> | undefined;
  /** Tokens that were revoked in the former content, and would be valid in the new one. */
  revocations = 0;
  /** Tokens of the new content that are valid. */
  validTokens = 0;

  constructor(parts: VaultRestoreParts) {
    this.#parts = parts;
  }

  async write(): Promise<void> {
    for await (const part of this.#parts.content.tables) await this.#writeRows(part);
    await this.#putAll(repositoryDocuments(this.#repositories));
    if (this.#apps.length > 0) await this.#put(APPS, () => ({ apps: this.#apps.map(entryOf) }));
    await this.#writeEpochs();
  }

  /** Removes the documents that this restore did not write. */
  async removeOthers(): Promise<void> {
    const { kv } = this.#parts;
    await inBatches(this.#others(), async (path) => kv.remove(path));
    if (!this.#written.has(APPS)) await kv.remove(APPS);
  }

  async *#others(): AsyncGenerator<string> {
    for (const folder of [...CONTENT_FOLDERS, ...DERIVED_FOLDERS]) {
      for await (const path of this.#withLease(this.#parts.kv.paths(folder))) {
        if (!this.#written.has(path)) yield path;
      }
    }
  }

  async #writeRows({ table, rows }: TableRows): Promise<void> {
    switch (table) {
      case "users":
        return this.#putAll(typed("users", rows).flatMap((row) => userDocuments(row, this.#parts.box)));
      case "sessions":
        return this.#writeSessions(typed("sessions", rows).map(sessionOf));
      case "tokens":
        return this.#writeTokens(typed("tokens", rows).map(tokenOf));
      case "cached_repositories":
        this.#repositories.push(...typed("cached_repositories", rows).map(repositoryOf));
        return;
      case "apps":
        this.#apps.push(...typed("apps", rows).map((row) => appOf(row, this.#parts.box)));
        return;
      case "manifest_pointers":
        return this.#putAll(typed("manifest_pointers", rows).map(pointerDocument));
      case "audit":
        return this.#putAll(auditDocuments(typed("audit", rows).map(auditRecordOf)));
      case "repository_epochs":
        return;
      default:
        throw new SvcError("backup_refused", `Cannot restore the table ${table} into Vault`);
    }
  }

  async #writeSessions(sessions: readonly SessionRecord[]): Promise<void> {
    const { now } = this.#parts.content;
    const ended = await this.#ended(sessions);
    const kept = sessions.filter(({ id }) => !ended.has(id));
    await this.#putAll(kept.flatMap(sessionDocuments));
    const valid = (some: readonly SessionRecord[]): number =>
      some.filter(({ kind, expiresAt }) => kind === "administration" && expiresAt > now).length;
    this.validTokens += valid(kept);
    this.revocations += valid(sessions) - valid(kept);
  }

  /** Administration tokens that were revoked in the former content. To find them takes a request for each document of the audit. */
  async #ended(sessions: readonly SessionRecord[]): Promise<ReadonlySet<string>> {
    if (!sessions.some(({ kind }) => kind === "administration")) return new Set();
    const { kv, keepLease } = this.#parts;
    this.#endedAdministration ??= await endedAdministrationTokens(kv, keepLease);
    return this.#endedAdministration;
  }

  async #writeTokens(tokens: readonly TokenRecord[]): Promise<void> {
    await this.#putAll(tokens.flatMap(tokenNames));
    await inBatches(this.#withLease(tokens), async (token) => this.#writeToken(token));
  }

  /** A token that the former content has as revoked stays so. */
  async #writeToken(token: TokenRecord): Promise<void> {
    const stored = await this.#put<TokenRecord | null>(tokenPath(token), (former) => ({
      ...token,
      revokedAt: token.revokedAt ?? former?.revokedAt,
    }));
    if (this.#isValid(stored)) this.validTokens++;
    else if (this.#isValid(token)) this.revocations++;
  }

  #isValid(token: TokenRecord | null): boolean {
    if (token === null || token.revokedAt !== undefined) return false;
    return (token.expiresAt ?? Infinity) > this.#parts.content.now;
  }

  async #writeEpochs(): Promise<void> {
    const { kv, content } = this.#parts;
    const present = await vaultEpochs(kv).all();
    const raisedTo = content.raiseEpochs ? await kv.now() : undefined;
    await this.#putAll(epochDocuments(higherEpochs(present, content.epochs, raisedTo)));
  }

  async #putAll(documents: readonly PlacedDocument[]): Promise<void> {
    await inBatches(this.#withLease(documents), async ({ path, value }) => {
      await this.#put(path, () => value);
    });
  }

  /** @returns the stored value */
  async #put<T>(path: string, value: (former: T | undefined) => T): Promise<T> {
    this.#written.add(path);
    return this.#parts.kv.put(path, value);
  }

  async *#withLease<T>(items: Iterable<T> | AsyncIterable<T>): AsyncGenerator<T> {
    for await (const item of items) {
      await this.#parts.keepLease();
      yield item;
    }
  }
}

/** Rows with the columns of their table: the rows of a backup were checked before. */
function typed<Name extends keyof Tables>(
  _table: Name,
  rows: readonly ContentRow[],
): readonly Tables[Name][] {
  return rows as unknown as readonly Tables[Name][];
}

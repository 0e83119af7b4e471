import type { Kysely, Selectable } from "kysely";
import { SvcError } from "../../errors.ts";
import type { CachedRepositoryRecord, CachedRepositoryStore } from "../store.ts";
import { asked } from "./asked.ts";
import type { Tables } from "./tables.ts";

export class SqlCachedRepositories implements CachedRepositoryStore {
  readonly #db: Kysely<Tables>;
  readonly #isUniqueViolation: (error: unknown) => boolean;

  constructor(db: Kysely<Tables>, isUniqueViolation: (error: unknown) => boolean) {
    this.#db = db;
    this.#isUniqueViolation = isUniqueViolation;
  }

  async list(): Promise<readonly CachedRepositoryRecord[]> {
    return asked(async () => {
      const rows = await this.#db.selectFrom("cached_repositories").selectAll().execute();
      // Sorted here: each database has an order of text of its own.
      return rows.toSorted((a, b) => (a.key < b.key ? -1 : 1)).map(fromRow);
    });
  }

  async insert(record: CachedRepositoryRecord): Promise<void> {
    await asked(async () => {
      try {
        await this.#db.insertInto("cached_repositories").values(toRow(record)).execute();
      } catch (error) {
        if (!this.#isUniqueViolation(error)) throw error;
        throw new SvcError("already_exists", `${record.owner}/${record.name} is listed already`);
      }
    });
  }

  async update(record: CachedRepositoryRecord): Promise<boolean> {
    return asked(async () => {
      const { enabled, timeout_seconds, max_cache_size_mb, updated_at, version } = toRow(record);
      const { numUpdatedRows } = await this.#db
        .updateTable("cached_repositories")
        .set({ enabled, timeout_seconds, max_cache_size_mb, updated_at, version })
        .where("id", "=", record.id)
        .where("version", "=", record.version - 1)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    });
  }

  async delete(id: string): Promise<boolean> {
    return asked(async () => {
      const { numDeletedRows } = await this.#db
        .deleteFrom("cached_repositories")
        .where("id", "=", id)
        .executeTakeFirst();
      return numDeletedRows === 1n;
    });
  }
}

function toRow(record: CachedRepositoryRecord): Tables["cached_repositories"] {
  return {
    id: record.id,
    owner: record.owner,
    name: record.name,
    key: `${record.owner}/${record.name}`.toLowerCase(),
    enabled: record.enabled ? 1 : 0,
    timeout_seconds: record.timeoutSeconds ?? null,
    max_cache_size_mb: record.maxCacheSizeMb ?? null,
    created_at: record.createdAt,
    updated_at: record.updatedAt,
    version: record.version,
  };
}

function fromRow(row: Selectable<Tables["cached_repositories"]>): CachedRepositoryRecord {
  return {
    id: row.id,
    owner: row.owner,
    name: row.name,
    enabled: row.enabled !== 0,
    timeoutSeconds: row.timeout_seconds ?? undefined,
    maxCacheSizeMb: row.max_cache_size_mb ?? undefined,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    version: row.version,
  };
}

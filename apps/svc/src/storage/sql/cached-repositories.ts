import type { Kysely } from "kysely";
import { SvcError } from "../../errors.ts";
import type { CachedRepositoryStore } from "../store.ts";
import { counted } from "./coordination/changes.ts";
import type { SqlSpecifics } from "./specifics.ts";
import { repositoryOf, repositoryRow } from "../rows/records.ts";
import { toRow, type Tables } from "../rows/tables.ts";

export function sqlCachedRepositories(db: Kysely<Tables>, specifics: SqlSpecifics): CachedRepositoryStore {
  const changed = async <Result>(change: (transaction: Kysely<Tables>) => Promise<Result>): Promise<Result> =>
    counted(db, "repositories", specifics, change);
  return {
    async list() {
      const rows = await db.selectFrom("cached_repositories").selectAll().execute();
      // Sorted here, because each database has its own order of text.
      return rows.toSorted((a, b) => (a.key < b.key ? -1 : 1)).map(repositoryOf);
    },

    async insert(record) {
      const { owner, name } = record;
      try {
        const row = repositoryRow(record);
        await changed(async (transaction) =>
          transaction.insertInto("cached_repositories").values(row).execute(),
        );
      } catch (error) {
        if (!specifics.isUniqueViolation(error)) throw error;
        throw new SvcError("already_exists", `${owner}/${name} is listed already`);
      }
    },

    async update(record) {
      const { enabled, timeout_seconds, max_cache_size_mb, seed, bundles, updated_at, version } =
        toRow(record);
      return changed(async (transaction) => {
        const { numUpdatedRows } = await transaction
          .updateTable("cached_repositories")
          .set({ enabled, timeout_seconds, max_cache_size_mb, seed, bundles, updated_at, version })
          .where("id", "=", record.id)
          .where("version", "=", record.version - 1)
          .executeTakeFirst();
        return numUpdatedRows === 1n;
      });
    },

    async delete(id) {
      return changed(async (transaction) => {
        const query = transaction.deleteFrom("cached_repositories").where("id", "=", id);
        return (await query.executeTakeFirst()).numDeletedRows === 1n;
      });
    },
  };
}

import type { Kysely, Transaction } from "kysely";
import { SvcError } from "../../errors.ts";
import type { SecretBox } from "../secret-box.ts";
import type { AppRecord, AppStore } from "../store.ts";
import { appOf, appRow } from "../rows/records.ts";
import type { Tables } from "../rows/tables.ts";

export function sqlApps(
  db: Kysely<Tables>,
  box: SecretBox,
  isUniqueViolation: (error: unknown) => boolean,
): AppStore {
  const rowOf = (record: AppRecord): Tables["apps"] => appRow(record, box);
  const recordOf = (row: Tables["apps"]): AppRecord => appOf(row, box);
  return {
    async list() {
      const rows = await db.selectFrom("apps").selectAll().execute();
      // Sorted here, because each database has its own order of text.
      const order = ({ name, id }: Tables["apps"]): string => `${name}\n${id}`;
      return rows.toSorted((a, b) => (order(a) < order(b) ? -1 : 1)).map(recordOf);
    },

    async get(id) {
      const row = await db.selectFrom("apps").selectAll().where("id", "=", id).executeTakeFirst();
      return row && recordOf(row);
    },

    async insert(record) {
      try {
        await db.transaction().execute(async (transaction) => {
          if (record.isDefault) await takeDefault(transaction, record);
          await transaction.insertInto("apps").values(rowOf(record)).execute();
        });
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
        throw new SvcError("already_exists", `The app ${record.appId} is registered already`);
      }
    },

    async update(record) {
      const { id, app_id: _app, source: _source, created_at: _created, ...changed } = rowOf(record);
      return db.transaction().execute(async (transaction) => {
        const { numUpdatedRows } = await transaction
          .updateTable("apps")
          .set(changed)
          .where("id", "=", id)
          .where("version", "=", record.version - 1)
          .executeTakeFirst();
        if (numUpdatedRows !== 1n) return false;
        if (record.isDefault) await takeDefault(transaction, record);
        return true;
      });
    },

    async delete(id) {
      const { numDeletedRows } = await db.deleteFrom("apps").where("id", "=", id).executeTakeFirst();
      return numDeletedRows === 1n;
    },
  };
}

async function takeDefault(transaction: Transaction<Tables>, record: AppRecord): Promise<void> {
  await transaction
    .updateTable("apps")
    .set(({ eb }) => ({ is_default: 0, version: eb("version", "+", 1), updated_at: record.updatedAt }))
    .where("is_default", "=", 1)
    .where("id", "!=", record.id)
    .execute();
}

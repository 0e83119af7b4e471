import type { Kysely, Selectable, Transaction } from "kysely";
import { SvcError } from "../../errors.ts";
import type { SecretBox } from "../secret-box.ts";
import type { AppRecord, AppStore } from "../store.ts";
import { asked } from "./asked.ts";
import type { Tables } from "./tables.ts";

export class SqlApps implements AppStore {
  readonly #db: Kysely<Tables>;
  readonly #box: SecretBox;
  readonly #isUniqueViolation: (error: unknown) => boolean;

  constructor(db: Kysely<Tables>, box: SecretBox, isUniqueViolation: (error: unknown) => boolean) {
    this.#db = db;
    this.#box = box;
    this.#isUniqueViolation = isUniqueViolation;
  }

  async list(): Promise<readonly AppRecord[]> {
    return asked(async () => {
      const rows = await this.#db.selectFrom("apps").selectAll().execute();
      // Sorted here: each database has an order of text of its own.
      const order = ({ name, id }: (typeof rows)[number]): string => `${name}\n${id}`;
      return rows.toSorted((a, b) => (order(a) < order(b) ? -1 : 1)).map((row) => this.#fromRow(row));
    });
  }

  async get(id: string): Promise<AppRecord | undefined> {
    return asked(async () => {
      const row = await this.#db.selectFrom("apps").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : this.#fromRow(row);
    });
  }

  async insert(record: AppRecord): Promise<void> {
    const row = this.#toRow(record);
    await asked(async () => {
      try {
        await this.#db.transaction().execute(async (transaction) => {
          if (record.isDefault) await takeDefault(transaction, record);
          await transaction.insertInto("apps").values(row).execute();
        });
      } catch (error) {
        if (!this.#isUniqueViolation(error)) throw error;
        throw new SvcError("already_exists", `The app ${record.appId} is registered already`);
      }
    });
  }

  async update(record: AppRecord): Promise<boolean> {
    const { id, app_id: _app, source: _source, created_at: _created, ...changed } = this.#toRow(record);
    return asked(async () =>
      this.#db.transaction().execute(async (transaction) => {
        const { numUpdatedRows } = await transaction
          .updateTable("apps")
          .set(changed)
          .where("id", "=", id)
          .where("version", "=", record.version - 1)
          .executeTakeFirst();
        if (numUpdatedRows !== 1n) return false;
        if (record.isDefault) await takeDefault(transaction, record);
        return true;
      }),
    );
  }

  async delete(id: string): Promise<boolean> {
    return asked(async () => {
      const { numDeletedRows } = await this.#db.deleteFrom("apps").where("id", "=", id).executeTakeFirst();
      return numDeletedRows === 1n;
    });
  }

  #toRow(record: AppRecord): Tables["apps"] {
    const { id, webhookSecret } = record;
    return {
      id,
      app_id: record.appId,
      slug: record.slug,
      name: record.name,
      owner_login: record.ownerLogin ?? null,
      client_id: record.clientId ?? null,
      private_key: this.#box.seal(record.privateKey, privateKeyPlace(id)),
      webhook_secret:
        webhookSecret === undefined ? null : this.#box.seal(webhookSecret, webhookSecretPlace(id)),
      is_default: record.isDefault ? 1 : 0,
      source: record.source,
      created_at: record.createdAt,
      updated_at: record.updatedAt,
      version: record.version,
    };
  }

  #fromRow(row: Selectable<Tables["apps"]>): AppRecord {
    return {
      id: row.id,
      appId: row.app_id,
      slug: row.slug,
      name: row.name,
      ownerLogin: row.owner_login ?? undefined,
      clientId: row.client_id ?? undefined,
      privateKey: this.#box.open(row.private_key, privateKeyPlace(row.id)),
      webhookSecret:
        row.webhook_secret === null
          ? undefined
          : this.#box.open(row.webhook_secret, webhookSecretPlace(row.id)),
      isDefault: row.is_default !== 0,
      source: row.source === "configuration" || row.source === "manifest" ? row.source : "api",
      createdAt: row.created_at,
      updatedAt: row.updated_at,
      version: row.version,
    };
  }
}

/** What an app's private key is sealed for. */
export function privateKeyPlace(id: string): string {
  return `apps/${id}/private_key`;
}

/** What an app's webhook secret is sealed for. */
export function webhookSecretPlace(id: string): string {
  return `apps/${id}/webhook_secret`;
}

async function takeDefault(transaction: Transaction<Tables>, record: AppRecord): Promise<void> {
  await transaction
    .updateTable("apps")
    .set(({ eb }) => ({ is_default: 0, version: eb("version", "+", 1), updated_at: record.updatedAt }))
    .where("is_default", "=", 1)
    .where("id", "!=", record.id)
    .execute();
}

import { Secret } from "@devplat/base";
import type { Kysely, Selectable } from "kysely";
import type { SecretBox } from "../secret-box.ts";
import type { OneTimeRecord, OneTimeStore } from "../store.ts";
import { asked } from "./asked.ts";
import type { Tables } from "./tables.ts";

export class SqlOneTime implements OneTimeStore {
  readonly #db: Kysely<Tables>;
  readonly #box: SecretBox;

  constructor(db: Kysely<Tables>, box: SecretBox) {
    this.#db = db;
    this.#box = box;
  }

  async put(record: OneTimeRecord, now: number): Promise<boolean> {
    const { kind, key, expiresAt } = record;
    const value = this.#seal(kind, key, record.value);
    return asked(async () => {
      const { numInsertedOrUpdatedRows } = await this.#db
        .insertInto("one_time")
        .values({ kind, key, value, expires_at: expiresAt })
        .onConflict((conflict) =>
          conflict
            .columns(["kind", "key"])
            .doUpdateSet({ value, expires_at: expiresAt })
            .where("one_time.expires_at", "<=", now),
        )
        .executeTakeFirst();
      return numInsertedOrUpdatedRows === 1n;
    });
  }

  async get(kind: string, key: string, now: number): Promise<OneTimeRecord | undefined> {
    return asked(async () => {
      const row = await this.#row(kind, key, now);
      return row === undefined ? undefined : this.#fromRow(row);
    });
  }

  async replace(kind: string, key: string, from: string, to: string, now: number): Promise<boolean> {
    return asked(async () => {
      // A sealed text differs each time, so the value is compared here and the row by its sealed text.
      const row = await this.#row(kind, key, now);
      if (row === undefined || this.#fromRow(row).value !== from) return false;
      const { numUpdatedRows } = await this.#db
        .updateTable("one_time")
        .set({ value: this.#seal(kind, key, to) })
        .where("kind", "=", kind)
        .where("key", "=", key)
        .where("value", "=", row.value)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    });
  }

  async take(kind: string, key: string, now: number): Promise<OneTimeRecord | undefined> {
    return asked(async () => {
      const row = await this.#db
        .deleteFrom("one_time")
        .where("kind", "=", kind)
        .where("key", "=", key)
        .where("expires_at", ">", now)
        .returningAll()
        .executeTakeFirst();
      return row === undefined ? undefined : this.#fromRow(row);
    });
  }

  async deleteExpired(now: number): Promise<number> {
    return asked(async () => {
      const { numDeletedRows } = await this.#db
        .deleteFrom("one_time")
        .where("expires_at", "<=", now)
        .executeTakeFirst();
      return Number(numDeletedRows);
    });
  }

  async #row(kind: string, key: string, now: number): Promise<Selectable<Tables["one_time"]> | undefined> {
    return this.#db
      .selectFrom("one_time")
      .selectAll()
      .where("kind", "=", kind)
      .where("key", "=", key)
      .where("expires_at", ">", now)
      .executeTakeFirst();
  }

  #seal(kind: string, key: string, value: string): string {
    return this.#box.seal(new Secret(value), oneTimePlace(kind, key));
  }

  #fromRow({ kind, key, value, expires_at }: Selectable<Tables["one_time"]>): OneTimeRecord {
    const opened = this.#box.open(value, oneTimePlace(kind, key)).reveal();
    return { kind, key, value: opened, expiresAt: expires_at };
  }
}

/** What an entry's value is sealed for. */
export function oneTimePlace(kind: string, key: string): string {
  return `one_time/${kind}/${key}`;
}

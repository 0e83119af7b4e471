import type { Kysely } from "kysely";
import type { LeaseStore } from "../store.ts";
import { asked } from "./asked.ts";
import type { Tables } from "./tables.ts";

export class SqlLeases implements LeaseStore {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  async acquire(name: string, holder: string, ttlMs: number, now: number): Promise<boolean> {
    return asked(async () => {
      const { numInsertedOrUpdatedRows } = await this.#db
        .insertInto("leases")
        .values({ name, holder, expires_at: now + ttlMs })
        .onConflict((conflict) =>
          conflict
            .column("name")
            .doUpdateSet({ holder, expires_at: now + ttlMs })
            .where(({ eb }) => eb.or([eb("leases.expires_at", "<=", now), eb("leases.holder", "=", holder)])),
        )
        .executeTakeFirst();
      return numInsertedOrUpdatedRows === 1n;
    });
  }

  async release(name: string, holder: string): Promise<void> {
    await asked(async () => {
      await this.#db.deleteFrom("leases").where("name", "=", name).where("holder", "=", holder).execute();
    });
  }
}

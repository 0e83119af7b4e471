import type { Config } from "./schema.ts";

/** Whether the database is one that several instances on different machines can share, and that is made for it. */
export function hasCommonDatabase({ database }: Config): boolean {
  return database.driver === "postgres";
}

/** Whether instances share fetches from the code host: `cache.share_fetches`, by default if they share a database. */
export function sharesFetches(config: Config): boolean {
  return config.cache.share_fetches ?? hasCommonDatabase(config);
}

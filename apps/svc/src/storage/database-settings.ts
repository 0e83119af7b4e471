import { resolve } from "node:path";
import type { Config } from "../config/schema.ts";
import type { DatabaseSettings } from "./open-store.ts";

/** The part of the configuration that says where the database is. */
export function databaseSettings({ database, data_dir }: Config): DatabaseSettings {
  if (database.driver === "vault") throw new TypeError("refused before: see config/refusals.ts");
  return {
    driver: database.driver,
    dsn: database.dsn,
    dataDir: resolve(data_dir),
    maxConnections: database.max_connections,
  };
}

import { printJson, printLine } from "@devplat/base/terminal";
import { refuseUnusable } from "../config/refusals.ts";
import { databaseSettings } from "../storage/database-settings.ts";
import type { Database } from "../storage/database.ts";
import { openDatabase } from "../storage/open-store.ts";
import { readConfig, type ConfigOption } from "./settings.ts";

export async function migrateUp(option: ConfigOption & { readonly json: boolean }): Promise<void> {
  const applied = await withDatabase(option, async (database) => database.migrate());
  if (option.json) {
    printJson({ applied }, 0);
    return;
  }
  for (const name of applied) printLine(`applied ${name}`);
  if (applied.length === 0) printLine("the database is up to date");
}

export async function migrateStatus(option: ConfigOption & { readonly json: boolean }): Promise<void> {
  const state = await withDatabase(option, async (database) => database.state());
  if (option.json) printJson(state, 0);
  else {
    for (const [word, names] of Object.entries(state) as [string, readonly string[]][]) {
      for (const name of names) printLine(`${word.padEnd(8)} ${name}`);
    }
  }
  if (state.pending.length > 0 || state.unknown.length > 0) process.exitCode = 1;
}

async function withDatabase<T>(option: ConfigOption, action: (database: Database) => Promise<T>): Promise<T> {
  const { config } = readConfig(option);
  refuseUnusable(config);
  const database = await openDatabase(databaseSettings(config));
  try {
    return await action(database);
  } finally {
    await database.close();
  }
}

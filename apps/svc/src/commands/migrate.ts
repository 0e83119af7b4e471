import { printResult } from "@devplat/cli";
import { printLine } from "@devplat/base/terminal";
import { refuseUnusable } from "../config/refusals.ts";
import { databaseSettings } from "../storage/database-settings.ts";
import type { Database } from "../storage/database.ts";
import { unusable } from "../storage/migration-state.ts";
import { openDatabase } from "../storage/open-store.ts";
import { readConfig, type GlobalFlags, type RunCommand } from "./command.ts";

export const up: RunCommand = async ({ flags, options }) => {
  const applied = await withDatabase(flags, async (database) => database.migrate());
  printResult(options, { applied }, () => {
    for (const name of applied) printLine(`applied ${name}`);
    if (applied.length === 0) printLine("the database is up to date");
  });
};

export const status: RunCommand = async ({ flags, options }) => {
  const state = await withDatabase(flags, async (database) => database.state());
  printResult(options, state, () => {
    for (const [word, names] of Object.entries(state) as [string, readonly string[]][]) {
      for (const name of names) printLine(`${word.padEnd(8)} ${name}`);
    }
  });
  return state.pending.length > 0 || unusable(state).length > 0 ? 1 : 0;
};

async function withDatabase<T>(flags: GlobalFlags, action: (database: Database) => Promise<T>): Promise<T> {
  const { config } = await readConfig(flags);
  refuseUnusable(config);
  const database = await openDatabase(databaseSettings(config));
  try {
    return await action(database);
  } finally {
    await database.close();
  }
}

import { refuseUnusable } from "../config/refusals.ts";
import { databaseState, migrateDatabase } from "../storage/open-store.ts";
import { databaseSettings, readConfig, type ConfigOption } from "./settings.ts";

export async function migrateUp(option: ConfigOption): Promise<void> {
  const loaded = readConfig(option);
  refuseUnusable(loaded.config);
  const applied = await migrateDatabase(databaseSettings(loaded));
  for (const name of applied) process.stdout.write(`applied ${name}\n`);
  if (applied.length === 0) process.stdout.write("the database is up to date\n");
}

export async function migrateStatus(option: ConfigOption & { readonly json: boolean }): Promise<void> {
  const loaded = readConfig(option);
  refuseUnusable(loaded.config);
  const state = await databaseState(databaseSettings(loaded));
  if (option.json) process.stdout.write(`${JSON.stringify(state)}\n`);
  else {
    for (const [word, names] of Object.entries(state) as [string, readonly string[]][]) {
      for (const name of names) process.stdout.write(`${word.padEnd(8)} ${name}\n`);
    }
  }
  if (state.pending.length > 0 || state.unknown.length > 0) process.exitCode = 1;
}

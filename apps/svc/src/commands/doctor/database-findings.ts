import { lstat } from "node:fs/promises";
import { within } from "@devplat/base";
import type { Findings, Outcome } from "@devplat/cli/findings";
import { hasCommonDatabase } from "../../config/common-database.ts";
import type { Config } from "../../config/schema.ts";
import { differingSettings, settingsDigests } from "../../coordination/shared-settings.ts";
import { SvcError } from "../../errors.ts";
import { objectKeys } from "../../assemble/object-keys.ts";
import { databaseSettings } from "../../storage/database-settings.ts";
import { unusable } from "../../storage/migration-state.ts";
import { databaseFile, openDatabase } from "../../storage/open-store.ts";
import { runningInstances } from "../../storage/running-instances.ts";
import type { Store } from "../../storage/store.ts";

/** Milliseconds for all checks of the database. One that is only slow answers within its own limits. */
const LIMIT_MS = 15_000;
/** Milliseconds after which a database that answers counts as slow: each request with a token waits for it. */
const SLOW_MS = 1000;

/** Checks the database, and with a common one whether the other instances have the same settings. */
export async function databaseFindings(config: Config, findings: Findings): Promise<void> {
  let others: (() => Outcome) | undefined;
  await findings.attempt(`database (${config.database.driver})`, async () =>
    withinLimit(async () => {
      const settings = databaseSettings(config);
      const path = await databaseFile(settings);
      // Opening it would make it.
      if (path !== undefined && (await lstat(path).catch(() => undefined)) === undefined) {
        return { fault: `${path} is not there yet: run 'svc migrate'` };
      }
      const database = await openDatabase(settings);
      try {
        const startedAt = performance.now();
        const state = await database.state();
        const ms = Math.round(performance.now() - startedAt);
        const { pending } = state;
        if (unusable(state).length > 0) return { fault: "a newer version of this program migrated it" };
        if (pending.length > 0) return { fault: `${pending.length} migration(s) pending: run 'svc migrate'` };
        const { key, key_previous: previous } = config.encryption;
        // Refuses keys that what is stored is not under; development mode's own would be made by asking for it.
        if (key !== undefined) {
          const store = await database.store(async () => ({ current: key, previous }));
          if (hasCommonDatabase(config)) others = await instancesOutcome(config, store);
        }
        return ms < SLOW_MS ? "up to date" : { warning: `up to date, but slow: it took ${ms} ms to answer` };
      } finally {
        await database.close();
      }
    }),
  );
  const found = others;
  if (found !== undefined) await findings.attempt("other instances", async () => found());
}

/** Compares the running instances with this configuration. */
async function instancesOutcome(config: Config, store: Store): Promise<() => Outcome> {
  const running = await runningInstances(store.instances);
  const hasBucket = config.cache.enabled && config.cache.object_bucket !== undefined;
  const manifestKeyId = hasBucket ? (await objectKeys(config, store.oneTime)).currentId : undefined;
  const own = { settingsDigests: settingsDigests(config), manifestKeyId };
  const differing = running.flatMap((each) => {
    const keys = differingSettings(own, each);
    return keys.length === 0 ? [] : [`${each.address ?? each.hostName} has another ${keys.join(", ")}`];
  });
  return () =>
    differing.length === 0
      ? `${running.length} running, with the same host and bucket as this configuration`
      : { warning: `${differing.join("; ")}: they share no data. Set the same on all of them` };
}

/** The checks, or a fault when their time is over. Their connections end by their own limits. */
async function withinLimit(check: () => Promise<Outcome>): Promise<Outcome> {
  const outcome = await within(check(), LIMIT_MS);
  if (outcome !== undefined) return outcome;
  throw new SvcError("database_unavailable", `The database gave no answer within ${LIMIT_MS / 1000} s`);
}

import { SvcError } from "../errors.ts";
import type { InstanceStore, ReportedInstance } from "./coordination-store.ts";

/** Milliseconds since its last report for which an instance counts as running. It reports every five seconds. */
export const RUNNING_MS = 15_000;

/** Instances that use the database. One that was killed stays among them for {@link RUNNING_MS}. */
export async function runningInstances(
  instances: Pick<InstanceStore, "list">,
): Promise<readonly ReportedInstance[]> {
  const all = await instances.list();
  return all.filter(({ reportAgeMs }) => reportAgeMs < RUNNING_MS);
}

/** @throws SvcError `database_in_use` */
export async function refuseRunningInstances(instances: Pick<InstanceStore, "list">): Promise<void> {
  const running = await runningInstances(instances);
  if (running.length === 0) return;
  const names = [...new Set(running.map(({ hostName }) => hostName))].join(", ");
  throw new SvcError(
    "database_in_use",
    `Cannot restore: ${running.length} instance(s) use the database (${names})`,
    {
      hint: `Stop them. One that was killed counts as running for ${RUNNING_MS / 1000} seconds.`,
    },
  );
}

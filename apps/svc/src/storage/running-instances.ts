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

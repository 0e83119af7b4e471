import { SvcError } from "../errors.ts";

/**
 * Refuses a database with content, because a restore would delete it.
 *
 * @param found rows that it has, by table
 * @throws SvcError `database_not_empty`
 */
export function refuseContent(found: Readonly<Record<string, number>>): void {
  const counts = Object.entries(found).map(([name, count]) => `${name}: ${count}`);
  if (counts.length === 0) return;
  throw new SvcError(
    "database_not_empty",
    `Cannot restore: the database is not empty (${counts.join(", ")})`,
    {
      hint: "Restore into an empty one. Or give --replace, which deletes what the database has.",
    },
  );
}

/**
 * Epochs after a restore. They only grow: those of the database and those of the backup.
 *
 * @param raisedTo time by the clock of the database; undefined: no epoch is raised
 */
export function higherEpochs(
  present: ReadonlyMap<string, number>,
  restored: ReadonlyMap<string, number>,
  raisedTo: number | undefined,
): ReadonlyMap<string, number> {
  const next = new Map<string, number>();
  for (const key of new Set([...present.keys(), ...restored.keys()])) {
    const highest = Math.max(present.get(key) ?? 0, restored.get(key) ?? 0);
    const epoch = raisedTo === undefined ? highest : Math.max(raisedTo, highest + 1);
    if (epoch > 0) next.set(key, epoch);
  }
  return next;
}

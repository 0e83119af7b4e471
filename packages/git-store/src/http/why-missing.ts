import { join } from "node:path";
import { GitStoreError } from "../errors.ts";
import type { ObjectDatabase } from "../object-database.ts";
import { readFolder } from "../read-file.ts";

/**
 * Finds out why an object is missing: its file is damaged, an alternate cannot be read, a pack has no index, or the repository is
 * a partial clone.
 *
 * @returns an error that says so, or the same error
 */
export function whyMissing(objects: ObjectDatabase, error: unknown): unknown {
  if (!(error instanceof GitStoreError) || error.code !== "missing_object") return error;
  const { oid } = error.details;
  if (oid === undefined) return error;
  const because = (reason: string, cause: unknown = error): GitStoreError =>
    new GitStoreError("missing_object", `${error.message}: ${reason}`, { oid }, { cause });
  try {
    // A damaged loose object is not in the graph.
    objects.loose.read(oid);
  } catch (damage) {
    return damage;
  }
  const [problem] = objects.sources.problems;
  if (problem !== undefined) {
    // The text has a path, which a client must not see.
    return because("an alternate of the repository cannot be read", new Error(problem));
  }
  for (const folder of objects.sources.folders) {
    const files = new Set(readFolder(join(folder, "pack")));
    for (const file of files) {
      if (file.endsWith(".promisor")) {
        return because('the repository is a partial clone. Run "git fetch --refetch --no-filter" in it');
      }
      // Readers of a multi-pack-index do not need this file. Git does not remove it.
      const isPack = file.startsWith("pack-") && file.endsWith(".pack");
      if (isPack && !files.has(file.replace(/pack$/u, "idx"))) {
        return because(`${file} has no .idx file, so it is not read. Run "git index-pack" on it`);
      }
    }
  }
  return error;
}

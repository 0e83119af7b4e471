import type { Steps } from "@devplat/git-protocol";
import { finishInSlices, type ObjectGraph } from "@devplat/git-store";

/** Ids that are looked up between two turns of the event loop: about a millisecond. */
const OIDS_PER_STEP = 512;

/** Returns the ids that are not in the graph. Yields to the event loop. */
export async function missingOids(graph: ObjectGraph, oids: readonly string[]): Promise<string[]> {
  return await filterOids(oids, (oid) => graph.numbers.numberOfOid(oid) < 0);
}

/** Returns the ids for which the test is true. Yields to the event loop. */
export async function filterOids(oids: readonly string[], test: (oid: string) => boolean): Promise<string[]> {
  return await finishInSlices(filterSteps(oids, test));
}

function* filterSteps(oids: readonly string[], test: (oid: string) => boolean): Steps<string[]> {
  const kept: string[] = [];
  for (const [at, oid] of oids.entries()) {
    if (at % OIDS_PER_STEP === 0) yield;
    if (test(oid)) kept.push(oid);
  }
  return kept;
}

import { once } from "node:events";
import type { ChangeCounts, ChangeStore, ChangeTopic } from "../../coordination-store.ts";
import type { VaultKv } from "../kv.ts";

const DOCUMENT = "changes";
const NONE: ChangeCounts = { repositories: 0, epochs: 0 };

export function vaultChanges(kv: VaultKv): ChangeStore {
  return {
    async counts() {
      return { ...NONE, ...(await kv.read<ChangeCounts>(DOCUMENT))?.value };
    },

    async listen(_onChange, signal) {
      if (!signal.aborted) await once(signal, "abort");
    },
  };
}

/**
 * Runs a change and counts it, unless it gives false. There are no transactions: a crash in between leaves a change that
 * is not counted, which the others find with their next full comparison.
 */
export async function counted<Result>(
  kv: VaultKv,
  topic: ChangeTopic,
  change: () => Promise<Result>,
): Promise<Result> {
  const result = await change();
  if (result === false) return result;
  await kv.change<ChangeCounts>(DOCUMENT, (present) => {
    const counts = { ...NONE, ...present };
    return { ...counts, [topic]: counts[topic] + 1 };
  });
  return result;
}

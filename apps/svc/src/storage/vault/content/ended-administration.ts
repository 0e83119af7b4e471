import type { Batch } from "../audit.ts";
import { batches, inBatches } from "../batches.ts";
import { FORM, RESTORING, type FormDocument } from "../form.ts";
import type { VaultKv } from "../kv.ts";
import { sessionIdPath } from "./places.ts";

/**
 * Ids of administration tokens that were revoked in the former content. Nothing but the audit remains of them. A token that is still
 * there was not revoked, although a request for it may have been.
 *
 * The ids are noted in the form document, because a restore that was ended in the middle may have removed the audit. The
 * form document must have the mark of a restore.
 *
 * @param keepLease called before each group of requests
 */
export async function endedAdministrationTokens(
  kv: VaultKv,
  keepLease: () => Promise<void>,
): Promise<ReadonlySet<string>> {
  const ended = new Set((await kv.read<FormDocument>(FORM))?.value.endedAdministration);
  for await (const paths of batches(kv.paths("audit"))) {
    await keepLease();
    for (const { value } of await kv.readAll<Batch>(paths)) {
      for (const { action, outcome, target } of value.records) {
        if (action === "admin_token.revoked" && outcome === "allowed" && target !== undefined)
          ended.add(target);
      }
    }
  }
  await inBatches([...ended], async (id) => {
    if ((await kv.read(sessionIdPath(id))) !== undefined) ended.delete(id);
  });
  await kv.change<FormDocument>(FORM, () => ({ applied: [RESTORING], endedAdministration: [...ended] }));
  return ended;
}

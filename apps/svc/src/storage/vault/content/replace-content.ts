import type { NewContent, Replaced } from "../../database-content.ts";
import { refuseAhead } from "../../migration-state.ts";
import { refuseContent } from "../../replacement.ts";
import { refuseRunningInstances } from "../../running-instances.ts";
import type { SecretBox } from "../../secret-box.ts";
import { PATH as APPS } from "../apps.ts";
import { counted } from "../coordination/changes.ts";
import { vaultInstances } from "../coordination/instances.ts";
import { appliedMigrations, FORM, MIGRATIONS, RESTORING, type FormDocument } from "../form.ts";
import type { VaultKv } from "../kv.ts";
import { CONTENT_FOLDERS } from "./places.ts";
import { RestoreLease } from "./restore-lease.ts";
import { VaultRestore } from "./vault-restore.ts";

/**
 * @returns documents of the content that it has, by folder
 * @throws SvcError `database_in_use`, `database_not_empty`, `database_ahead`
 */
export async function refuseVaultReplacement(kv: VaultKv, replace: boolean): Promise<Replaced["deleted"]> {
  const applied = await appliedMigrations(kv);
  const known: readonly string[] = [...MIGRATIONS, RESTORING];
  refuseAhead({ applied, pending: [], unknown: applied.filter((name) => !known.includes(name)) });
  await refuseRunningInstances(vaultInstances(kv));
  const found: Record<string, number> = {};
  for (const folder of CONTENT_FOLDERS) {
    let count = 0;
    for await (const _ of kv.paths(folder)) count++;
    if (count > 0) found[folder.replaceAll("-", "_")] = count;
  }
  if ((await kv.read(APPS)) !== undefined) found[APPS] = 1;
  // Leftovers of a restore that did not end are not content.
  if (!replace && !applied.includes(RESTORING)) refuseContent(found);
  return found;
}

/**
 * Puts rows in place of what Vault has. Vault has no transactions: until the end the form document has a mark with which no
 * program starts. A restore that was ended in the middle is run again. It finds revocations and epochs of the former content in
 * the documents that it left. Revoked administration tokens leave no document: the form document has their ids until the end.
 *
 * @param box opens the secrets of the rows
 */
export async function replaceVaultContent(
  kv: VaultKv,
  content: NewContent,
  box: SecretBox,
): Promise<Replaced> {
  const lease = await RestoreLease.acquire(kv);
  try {
    const deleted = await refuseVaultReplacement(kv, content.replace);
    // The count of a large database may outlast the lease.
    await lease.renew();
    await mark(kv);
    const restore = new VaultRestore({ kv, content, box, keepLease: async () => lease.keep() });
    await restore.write();
    await restore.removeOthers();
    for (const topic of ["repositories", "epochs"] as const)
      await counted(kv, topic, () => Promise.resolve());
    await lease.renew();
    await kv.change<FormDocument>(FORM, () => ({ applied: [...MIGRATIONS] }));
    return { deleted, revocations: restore.revocations, validTokens: restore.validTokens };
  } finally {
    await lease.release();
  }
}

/**
 * Keeps all programs from starting with the database. An instance that starts reports first, and reads the form then. So either
 * it finds the mark, or the list here has it.
 */
async function mark(kv: VaultKv): Promise<void> {
  let former: FormDocument = { applied: [] };
  await kv.change<FormDocument>(FORM, (form) => {
    former = form ?? former;
    return { ...former, applied: [RESTORING] };
  });
  try {
    await refuseRunningInstances(vaultInstances(kv));
  } catch (error) {
    await kv.change<FormDocument>(FORM, () => former);
    throw error;
  }
}

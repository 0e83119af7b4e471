import { SvcError } from "../../errors.ts";
import type { VaultKv } from "./kv.ts";

/** The document that says which form the others have. */
export const FORM = "form";
/** The changes that make this program's form, in their order. */
export const MIGRATIONS = ["0001_initial"] as const;
/** In place of migrations while a restore runs, and after one that did not end. No version of the program starts with it. */
export const RESTORING = "restore_has_not_ended";

export interface FormDocument {
  readonly applied: readonly string[];
  /** Ids of revoked administration tokens of the former content, while a restore runs. */
  readonly endedAdministration?: readonly string[];
}

export async function appliedMigrations(kv: VaultKv): Promise<readonly string[]> {
  return (await kv.read<FormDocument>(FORM))?.value.applied ?? [];
}

/** @throws SvcError `database_unavailable`: a restore has not ended */
export function refuseUnfinishedRestore(applied: readonly string[]): void {
  if (!applied.includes(RESTORING)) return;
  throw new SvcError(
    "database_unavailable",
    "The database in Vault is not complete: a restore runs, or a restore did not end",
    {
      hint: "Wait for its end. If none runs, run 'svc restore' again, with the same backup.",
    },
  );
}

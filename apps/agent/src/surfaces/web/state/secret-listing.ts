import { SecretStoreError, checkFolder, type SecretStoreErrorCode } from "@devplat/secret-store";
import type { SecretEditor } from "../../../secrets/secret-editor.ts";

/** The names in a folder, as pages show them. */
export interface Listing {
  readonly names: readonly string[];
  /** Why an editable folder is shown as empty without being known to be so. Default: the store has listed it. */
  readonly fault?: string;
}

/**
 * Lists a folder. In an editable subtree a folder that cannot be listed counts as empty, with the reason.
 * @throws SecretStoreError for a folder elsewhere
 */
export async function listFolder({ store, policy }: SecretEditor, folder: string): Promise<Listing> {
  checkFolder(folder);
  try {
    return { names: await store.list(folder) };
  } catch (error) {
    if (!(error instanceof SecretStoreError) || !policy.coversFolder(folder)) throw error;
    return error.code === "not_found" ? { names: [] } : { names: [], fault: faultOf(error.code) };
  }
}

function faultOf(code: SecretStoreErrorCode): string {
  const reason = REASONS[code] ?? "the store does not answer";
  return `Could not be listed: ${reason}.`;
}

const REASONS: Partial<Record<SecretStoreErrorCode, string>> = {
  denied: "the store does not allow it",
  unauthenticated: "the store does not accept the token",
  sealed: "the store is sealed",
  misconfigured: "the store cannot be used with this configuration",
  corrupt: "the store's file cannot be read",
  insecure_files: "others can read the store's files",
};

/** The document that says which form the others have. */
export const FORM = "form";
/** The changes that make this program's form, in their order. */
export const MIGRATIONS = ["0001_initial"] as const;
/** In place of migrations while a restore runs, and after one that did not end. No version of the program starts with it. */
export const RESTORING = "restore_has_not_ended";

export interface FormDocument {
  readonly applied: readonly string[];
}

import { systemCode } from "@devplat/base";
import { isUnreadable } from "@devplat/base/file-damage";
import { GIT_STORE_ERROR_CODES, GitStoreError } from "@devplat/git-store";
import { JobFailure } from "../threads/job.ts";

/** Codes of git-store that are about the request or another process, not about the stored data. */
const HARMLESS: readonly string[] = ["unservable", "locked"];

/** Whether an error says that stored packs, or files next to them, are damaged. */
export function isDamage(error: unknown): boolean {
  if (isUnreadable(error)) return true;
  if (error instanceof GitStoreError) return !HARMLESS.includes(error.code);
  return error instanceof JobFailure && error.code === undefined;
}

/** Whether an error, also of a job, may come from damaged data. */
export function mayBeDamage(error: unknown): boolean {
  const code = systemCode(error);
  return GIT_STORE_ERROR_CODES.some((known) => known === code && !HARMLESS.includes(known));
}

import { SvcError } from "../errors.ts";

/** Versions of a record that a change may start from; undefined: any. */
export type ExpectedVersions = readonly number[] | undefined;

/** @throws SvcError `version_mismatch` when the record has another version than the caller saw */
export function requireVersion(record: { readonly version: number }, expected: ExpectedVersions): void {
  if (expected !== undefined && !expected.includes(record.version)) throw versionMismatch();
}

export function versionMismatch(): SvcError {
  return new SvcError("version_mismatch", "The record was changed since it was read", {
    hint: "Read it again, and repeat the change with its new ETag.",
  });
}

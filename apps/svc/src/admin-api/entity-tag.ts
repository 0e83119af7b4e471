import { SvcError } from "../errors.ts";

/** A record's `ETag` (RFC 9110 section 8.8.3): its version. */
export function entityTag(version: number): string {
  return `"${version}"`;
}

/**
 * The version that an `If-Match` header asks for (RFC 9110 section 13.1.1), out of a list of tags; undefined: any.
 *
 * @throws SvcError `version_mismatch` when the present version is not among them
 */
export function expectedVersion(ifMatch: string | undefined, present: number): number | undefined {
  if (ifMatch === undefined || ifMatch.trim() === "*") return undefined;
  const tags = ifMatch.split(",").map((tag) => tag.trim());
  if (tags.includes(entityTag(present))) return present;
  throw new SvcError("version_mismatch", "The record was changed since it was read", {
    hint: "Read it again, and repeat the change with its new ETag.",
  });
}

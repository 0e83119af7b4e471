import type { ExpectedVersions } from "../administration/record-version.ts";

/** A record's `ETag` (RFC 9110 section 8.8.3): its version. */
export function entityTag(version: number): string {
  return `"${version}"`;
}

/** The versions that an `If-Match` header names (RFC 9110 section 13.1.1). A tag of another form matches nothing. */
export function expectedVersions(ifMatch: string | undefined): ExpectedVersions {
  if (ifMatch === undefined || ifMatch.trim() === "*") return undefined;
  return ifMatch.split(",").map((tag) => Number(/^"([1-9]\d*)"$/.exec(tag.trim())?.[1] ?? 0));
}

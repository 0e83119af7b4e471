import type { SecretMetadata } from "@devplat/secret-store";

/** Tells a version from every other one: a secret that was removed and made again counts from 1 again. */
export function stampOf({ version, createdAt }: Pick<SecretMetadata, "version" | "createdAt">): string {
  return `${version}@${createdAt}`;
}

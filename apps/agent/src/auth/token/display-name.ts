/** Vault puts this before the display name of every child token. */
const CHILD_PREFIX = /^token-/;

/** The name of a token as its parent has it: a child token of a token without an entity belongs to the same user. */
export function withoutChildPrefix(displayName: string): string {
  return displayName.replace(CHILD_PREFIX, "");
}

/** Kind of the fetch of a job. */
export type Kind = "full" | "shallow" | "blobless" | "behind";

export const KINDS: readonly Kind[] = ["full", "shallow", "blobless", "behind"];

/** Names for people. */
export const KIND_NAMES: Readonly<Record<Kind, string>> = {
  full: "full clone",
  shallow: "clone with depth 1",
  blobless: "clone with blob:none",
  behind: "fetch of new commits",
};

/** A value for each kind. */
export type ByKind<Value> = Readonly<Record<Kind, Value>>;

export function byKind<Value>(valueOf: (kind: Kind) => Value): Record<Kind, Value> {
  return Object.fromEntries(KINDS.map((kind) => [kind, valueOf(kind)])) as Record<Kind, Value>;
}

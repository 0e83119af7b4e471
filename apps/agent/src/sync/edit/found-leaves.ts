import {
  equalValues,
  isListEntryLeaf,
  type DocumentFormat,
  type EditResult,
  type LeafPath,
} from "@devplat/document-edit";

/** Leaves of a rule before an edit. */
export interface KnownLeaves {
  readonly managed: readonly LeafPath[];
  /** Those of them that were in the file before the rule; see {@link foundLeaves}. */
  readonly found: readonly LeafPath[];
}

/**
 * The managed leaves that were in the file before the rule, and so are not removed with it. This is looked at in
 * entries of merged lists, which would go as a whole: the field by which an entry is known, and fields that the rule
 * did not have to change. A field that the rule changes later becomes its own.
 *
 * After a loss of state nothing has to be changed. All fields but the entry's key are then claimed again.
 * @param before undefined: there was no file
 * @param ours leaves of other rules that go in the same edit: a renamed rule takes over what it has set itself
 */
export function foundLeaves(
  format: DocumentFormat,
  before: string | undefined,
  edit: EditResult,
  known: KnownLeaves,
  ours: readonly LeafPath[],
): LeafPath[] {
  if (before === undefined) return [];
  const managed = new Set(known.managed.map(keyOf));
  const found = new Set(known.found.map(keyOf));
  const taken = new Set(ours.map(keyOf));
  const changed = edit.text !== before;
  const candidates = edit.managed.filter((leaf) => {
    const part = isListEntryLeaf(leaf);
    const key = keyOf(leaf);
    if (part === undefined || taken.has(key)) return false;
    return managed.has(key) ? found.has(key) : part === "key" || changed;
  });
  const compared = changed ? candidates : candidates.filter((leaf) => !managed.has(keyOf(leaf)));
  if (compared.length === 0) return candidates;
  const values = format.get(before, compared);
  const after = changed ? format.get(edit.text, compared) : values;
  const others = new Set(
    compared.filter((_leaf, index) => {
      const value = values[index];
      return value === undefined || !equalValues(value, after[index]);
    }),
  );
  return candidates.filter((leaf) => !others.has(leaf));
}

function keyOf(leaf: LeafPath): string {
  return JSON.stringify(leaf);
}

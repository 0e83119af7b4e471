import {
  equalValues,
  isListEntryLeaf,
  type DocumentFormat,
  type EditResult,
  type LeafPath,
} from "@devplat/document-edit";

/** What a rule knew of its leaves before an edit. */
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
  return edit.managed.filter((leaf) => {
    const part = isListEntryLeaf(leaf);
    const key = keyOf(leaf);
    if (part === undefined || taken.has(key)) return false;
    if (managed.has(key)) {
      if (!found.has(key)) return false;
      if (!changed) return true;
    } else if (part !== "key" && !changed) return false;
    const value = format.get(before, leaf);
    return value !== undefined && equalValues(value, format.get(edit.text, leaf));
  });
}

function keyOf(leaf: LeafPath): string {
  return JSON.stringify(leaf);
}

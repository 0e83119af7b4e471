import type { EditMap, EditOptions, EditValue, LeafPath } from "../contract.ts";
import { DocumentEditError } from "../errors.ts";
import { equalValues, isList, isMap, isNumber } from "./value.ts";

/** Segment of a leaf path for an entry of a merged sequence. */
export function itemSegment(field: string, value: string): string {
  return `[${field}=${value}]`;
}

/** Field and value of an item segment, or undefined for an ordinary key. */
export function parseItemSegment(segment: string): { field: string; value: string } | undefined {
  const match = /^\[([^=]+)=(.*)\]$/s.exec(segment);
  return match === null ? undefined : { field: match[1] ?? "", value: match[2] ?? "" };
}

/** Whether a leaf is in an entry of a merged sequence. `key` is the field that identifies the entry. */
export function isListEntryLeaf(leaf: LeafPath): "key" | "other" | undefined {
  const items = leaf.map(parseItemSegment);
  if (items.at(-2)?.field === leaf.at(-1)) return "key";
  return items.some((item) => item !== undefined) ? "other" : undefined;
}

/** Text that identifies an entry of a merged sequence, or undefined if it has none. */
function itemKey(item: EditValue | undefined, field: string): string | undefined {
  if (!isMap(item)) return undefined;
  const value = item.get(field);
  if (typeof value === "string") return value;
  return isNumber(value) ? value.number : undefined;
}

/** Field by which the sequence at `path` is merged, or undefined. Segments of entries do not count in the dotted path. */
export function mergeField(path: LeafPath, options: EditOptions): string | undefined {
  if (options.lists === undefined || options.merge === "replace") return undefined;
  const dotted = path.filter((segment) => parseItemSegment(segment) === undefined).join(".");
  return Object.hasOwn(options.lists, dotted) ? options.lists[dotted] : undefined;
}

/** Index of the entry with this key. @throws DocumentEditError `unsupported` if two entries have it */
export function findItem(
  items: readonly (EditValue | undefined)[],
  field: string,
  key: string,
  path: LeafPath,
): number {
  const first = items.findIndex((item) => itemKey(item, field) === key);
  if (first === -1) return -1;
  const second = items.findIndex((item, index) => index > first && itemKey(item, field) === key);
  if (second !== -1) {
    throw new DocumentEditError(
      "unsupported",
      `the list ${path.join(".")} has several entries with one ${field}: entries ${first + 1} and ${second + 1}`,
    );
  }
  return first;
}

/** Key of an entry of the new content. @throws DocumentEditError `unsupported` if it has none */
export function requiredItemKey(item: EditValue, index: number, field: string, path: LeafPath): string {
  const key = itemKey(item, field);
  if (key !== undefined) return key;
  throw new DocumentEditError(
    "unsupported",
    `entry ${index + 1} of the list ${path.join(".")} in the new content has no ${field} to be merged by`,
  );
}

/** The document after the leaves of `content` are set. This defines the result. Formats only find the bytes to change. */
export function mergeMaps(
  existing: EditMap,
  content: EditMap,
  options: EditOptions,
  path: LeafPath = [],
): EditMap {
  const merged = new Map(existing);
  for (const [key, wanted] of content) {
    merged.set(key, mergeValue(existing.get(key), wanted, options, [...path, key]));
  }
  return merged;
}

function mergeValue(
  present: EditValue | undefined,
  wanted: EditValue,
  options: EditOptions,
  path: LeafPath,
): EditValue {
  if (isMap(wanted)) return isMap(present) ? mergeMaps(present, wanted, options, path) : wanted;
  const field = mergeField(path, options);
  if (field === undefined || !isList(wanted) || !isList(present)) return wanted;
  const items = [...present];
  for (const [position, item] of wanted.entries()) {
    const key = requiredItemKey(item, position, field, path);
    const index = findItem(items, field, key, path);
    if (index === -1) items.push(item);
    else items[index] = mergeValue(items[index], item, options, [...path, itemSegment(field, key)]);
  }
  return items;
}

/** Leaves of a content, in order. */
export function leavesOf(content: EditMap, options: EditOptions): LeafPath[] {
  const leaves: LeafPath[] = [];
  const visit = (value: EditValue, path: LeafPath): void => {
    if (isMap(value) && value.size > 0) {
      for (const [key, inner] of value) visit(inner, [...path, key]);
      return;
    }
    const field = mergeField(path, options);
    if (field === undefined || !isList(value)) {
      leaves.push(path);
      return;
    }
    // An empty list manages no leaf: all entries of the sequence belong to other writers.
    for (const [index, item] of value.entries()) {
      visit(item, [...path, itemSegment(field, requiredItemKey(item, index, field, path))]);
    }
  };
  for (const [key, value] of content) visit(value, [key]);
  return leaves;
}

/** Splits a content into its values and the paths of its nulls, for `deleteNulls`. */
export function splitNulls(content: EditMap, path: LeafPath = []): { content: EditMap; nulls: LeafPath[] } {
  const kept = new Map<string, EditValue>();
  const nulls: LeafPath[] = [];
  for (const [key, value] of content) {
    if (value === null) {
      nulls.push([...path, key]);
    } else if (isMap(value) && value.size > 0) {
      const inner = splitNulls(value, [...path, key]);
      nulls.push(...inner.nulls);
      // A mapping with only deletions must not be created.
      if (inner.content.size > 0) kept.set(key, inner.content);
    } else {
      kept.set(key, value);
    }
  }
  return { content: kept, nulls };
}

/** Value at a path, or undefined. */
export function lookup(map: EditMap, path: LeafPath): EditValue | undefined {
  let value: EditValue | undefined = map;
  for (const segment of path) {
    if (isMap(value)) {
      value = value.get(segment);
    } else if (isList(value)) {
      const item = parseItemSegment(segment);
      if (item === undefined) return undefined;
      value = value.find((candidate) => itemKey(candidate, item.field) === item.value);
    } else {
      return undefined;
    }
  }
  return value;
}

/** Paths in `existing` that `content` does not have. `merge: replace` removes them. */
export function extraPaths(existing: EditMap, content: EditMap, path: LeafPath = []): LeafPath[] {
  const extra: LeafPath[] = [];
  for (const [key, value] of existing) {
    const wanted = content.get(key);
    if (wanted === undefined) extra.push([...path, key]);
    else if (isMap(value) && isMap(wanted)) extra.push(...extraPaths(value, wanted, [...path, key]));
  }
  return extra;
}

/** A tree of the segments to remove. A node that is `whole` is removed with all its content. */
interface CutNode {
  whole: boolean;
  readonly children: Map<string, CutNode>;
}

/**
 * Subtrees to cut to remove these paths, including mappings and sequences that become empty.
 *
 * @param leaves paths of leaves. A path that now has a mapping with keys is no longer a leaf, and stays
 * @param subtrees paths to remove with all their content
 * @returns existing paths, none inside another
 */
export function planCuts(
  map: EditMap,
  leaves: readonly LeafPath[],
  subtrees: readonly LeafPath[],
): LeafPath[] {
  const root: CutNode = { whole: false, children: new Map() };
  const add = (path: LeafPath): void => {
    let node = root;
    for (const segment of path) {
      let child = node.children.get(segment);
      if (child === undefined) node.children.set(segment, (child = { whole: false, children: new Map() }));
      node = child;
    }
    node.whole = true;
  };
  for (const path of subtrees) if (path.length > 0) add(path);
  for (const path of leaves) {
    const value = lookup(map, path);
    if (path.length > 0 && !(isMap(value) && value.size > 0)) add(path);
  }
  const cuts: LeafPath[] = [];
  collectCuts(map, root, [], cuts);
  return cuts;
}

/** Adds the cuts below a node. Returns true if the node becomes empty. The caller must then cut the node itself. */
function collectCuts(value: EditValue, node: CutNode, path: LeafPath, cuts: LeafPath[]): boolean {
  const inner: LeafPath[] = [];
  let left = isMap(value) ? value.size : isList(value) ? value.length : 1;
  for (const [segment, child] of node.children) {
    const target = lookup(new Map([["", value]]), ["", segment]);
    if (target === undefined) continue;
    if (child.whole || collectCuts(target, child, [...path, segment], inner)) {
      inner.push([...path, segment]);
      left--;
    }
  }
  // The field that identifies an entry is removed last. It stays while the entry has other fields.
  const item = path.length === 0 ? undefined : parseItemSegment(path.at(-1) ?? "");
  if (left > 0 && isMap(value) && item !== undefined) {
    const own = inner.findIndex((cut) => cut.length === path.length + 1 && cut.at(-1) === item.field);
    if (own !== -1) inner.splice(own, 1);
  }
  if (left === 0 && path.length > 0) return true;
  cuts.push(...inner);
  return false;
}

/** The mapping without the subtrees at these paths, which {@link planCuts} has found. */
export function withoutPaths(map: EditMap, cuts: readonly LeafPath[]): EditMap {
  const groups = Map.groupBy(cuts, (cut) => cut[0] ?? "");
  return cutValue(map, groups, 0) as EditMap;
}

function cutValue(
  value: EditValue,
  groups: ReadonlyMap<string, readonly LeafPath[]>,
  depth: number,
): EditValue {
  const below = (inner: EditValue, cuts: readonly LeafPath[] | undefined): EditValue | undefined => {
    if (cuts === undefined) return inner;
    if (cuts.some((cut) => cut.length === depth + 1)) return undefined;
    return cutValue(
      inner,
      Map.groupBy(cuts, (cut) => cut[depth + 1] ?? ""),
      depth + 1,
    );
  };
  if (isMap(value)) {
    const kept = new Map<string, EditValue>();
    for (const [key, inner] of value) {
      const result = below(inner, groups.get(key));
      if (result !== undefined) kept.set(key, result);
    }
    return kept;
  }
  if (!isList(value)) return value;
  let items: (EditValue | undefined)[] = [...value];
  for (const [segment, cuts] of groups) {
    const item = parseItemSegment(segment);
    const index = items.findIndex((entry) => item !== undefined && itemKey(entry, item.field) === item.value);
    if (index !== -1) items = items.with(index, below(items[index] ?? null, cuts));
  }
  return items.filter((entry) => entry !== undefined);
}

/** True if an edit does not change a value. */
export function isUnchanged(present: EditValue, wanted: EditValue): boolean {
  return equalValues(present, wanted) || (isMap(present) && isMap(wanted) && wanted.size === 0);
}

import type { EditMap, EditOptions, EditValue, LeafPath } from "../contract.ts";
import {
  findItem,
  isUnchanged,
  itemSegment,
  mergeField,
  parseItemSegment,
  requiredItemKey,
} from "./merge.ts";
import { isList, isMap } from "./value.ts";

/** A document as a tree. `at` has the data that the format needs to find the bytes of a node. */
export type TreeNode<At> =
  | { readonly kind: "map"; readonly entries: ReadonlyMap<string, TreeNode<At>>; readonly at: At }
  | { readonly kind: "list"; readonly items: readonly TreeNode<At>[]; readonly at: At }
  | { readonly kind: "scalar"; readonly value: EditValue; readonly at: At };
export type MapNode<At> = Extract<TreeNode<At>, { kind: "map" }>;
export type ListNode<At> = Extract<TreeNode<At>, { kind: "list" }>;

/** Edits of a format on the nodes of a tree. In one edit, each method is called no more than once for a node. */
export interface TreeWriter<At> {
  replace(node: TreeNode<At>, value: EditValue, path: LeafPath): void;
  insert(map: MapNode<At>, entries: readonly (readonly [string, EditValue])[], path: LeafPath): void;
  append(list: ListNode<At>, items: readonly EditValue[], path: LeafPath): void;
}

/** Nodes in a mapping or sequence, in order. */
export function childrenOf<At>(node: MapNode<At> | ListNode<At>): readonly TreeNode<At>[] {
  return node.kind === "map" ? [...node.entries.values()] : node.items;
}

/** The value of a node. */
export function valueOf<At>(node: TreeNode<At>): EditValue {
  if (node.kind === "scalar") return node.value;
  if (node.kind === "list") return node.items.map((item) => valueOf(item));
  return mapValue(node);
}

/** The value of a mapping. */
export function mapValue<At>(node: MapNode<At>): EditMap {
  const map = new Map<string, EditValue>();
  for (const [key, child] of node.entries) map.set(key, valueOf(child));
  return map;
}

/** Finds the nodes that `content` changes, and calls the writer only for them. */
export function planSet<At>(
  node: MapNode<At>,
  content: EditMap,
  options: EditOptions,
  writer: TreeWriter<At>,
  path: LeafPath = [],
): void {
  const fresh: (readonly [string, EditValue])[] = [];
  for (const [key, wanted] of content) {
    const child = node.entries.get(key);
    if (child === undefined) fresh.push([key, wanted]);
    else planValue(child, wanted, options, writer, [...path, key]);
  }
  if (fresh.length > 0) writer.insert(node, fresh, path);
}

function planValue<At>(
  node: TreeNode<At>,
  wanted: EditValue,
  options: EditOptions,
  writer: TreeWriter<At>,
  path: LeafPath,
): void {
  if (node.kind === "map" && isMap(wanted)) {
    planSet(node, wanted, options, writer, path);
    return;
  }
  const field = mergeField(path, options);
  if (node.kind === "list" && isList(wanted) && field !== undefined) {
    planList(node, wanted, field, options, writer, path);
  } else if (!isUnchanged(valueOf(node), wanted)) {
    writer.replace(node, wanted, path);
  }
}

function planList<At>(
  node: ListNode<At>,
  wanted: readonly EditValue[],
  field: string,
  options: EditOptions,
  writer: TreeWriter<At>,
  path: LeafPath,
): void {
  const present = node.items.map((item) => valueOf(item));
  const fresh: EditValue[] = [];
  for (const [position, item] of wanted.entries()) {
    const key = requiredItemKey(item, position, field, path);
    const index = findItem(present, field, key, path);
    const child = index === -1 ? undefined : node.items[index];
    if (child === undefined) fresh.push(item);
    else planValue(child, item, options, writer, [...path, itemSegment(field, key)]);
  }
  if (fresh.length > 0) writer.append(node, fresh, path);
}

/** Nodes to remove from one mapping or sequence. */
export interface Removal<At> {
  readonly parent: MapNode<At> | ListNode<At>;
  readonly children: ReadonlySet<TreeNode<At>>;
}

/** Groups paths from planCuts by the node from which they are removed. */
export function planRemovals<At>(root: MapNode<At>, paths: readonly LeafPath[]): Removal<At>[] {
  const groups = new Map<MapNode<At> | ListNode<At>, Set<TreeNode<At>>>();
  for (const path of paths) {
    let parent: TreeNode<At> | undefined = root;
    let node: TreeNode<At> | undefined = root;
    for (const segment of path) {
      parent = node;
      node = node === undefined ? undefined : childOf(node, segment);
    }
    if (node === undefined || parent === undefined || parent.kind === "scalar") continue;
    const children = groups.get(parent) ?? new Set();
    groups.set(parent, children.add(node));
  }
  return [...groups].map(([parent, children]) => ({ parent, children }));
}

function childOf<At>(node: TreeNode<At>, segment: string): TreeNode<At> | undefined {
  if (node.kind === "map") return node.entries.get(segment);
  const item = parseItemSegment(segment);
  if (node.kind !== "list" || item === undefined) return undefined;
  return node.items.find((entry) => {
    const field = entry.kind === "map" ? entry.entries.get(item.field) : undefined;
    if (field?.kind !== "scalar") return false;
    const value = field.value;
    return (
      value === item.value ||
      (typeof value === "object" && value !== null && "number" in value && value.number === item.value)
    );
  });
}

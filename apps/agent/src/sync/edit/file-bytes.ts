import type { DocumentFormat, EditMap, EditOptions, LeafPath } from "@devplat/document-edit";
import { AgentError } from "../../errors.ts";
import { foundLeaves } from "./found-leaves.ts";

/** Changes of one rule to a file. */
export interface Piece {
  readonly rule: string;
  /** The new content; undefined: only take away what was ours (a removed rule, a deleted secret). */
  readonly content: EditMap | undefined;
  readonly options: Pick<EditOptions, "merge" | "deleteNulls" | "lists">;
  /** Leaves that this rule set before. */
  readonly managedBefore: readonly LeafPath[];
  /** Those of {@link managedBefore} that were in the file before the rule first wrote it. They are never removed. */
  readonly foundBefore: readonly LeafPath[];
  /** True: leaves that are no longer wanted are removed. False: they stay in the file. */
  readonly clean: boolean;
  /** Format text: an existing file that this program has not written may be replaced. */
  readonly overwrite: boolean;
}

/** Result of a piece. */
export type PieceOutcome =
  | {
      readonly kind: "applied";
      readonly changed: boolean;
      readonly managed: readonly LeafPath[];
      readonly found: readonly LeafPath[];
    }
  | { readonly kind: "failed"; readonly error: unknown };

export interface MergedFile {
  /** The whole new content; undefined if nothing could be applied; `remove`: the file is to go. */
  readonly content: Buffer | undefined | "remove";
  readonly outcomes: ReadonlyMap<string, PieceOutcome>;
}

export interface MergeContext {
  readonly format: DocumentFormat;
  readonly wholeFile: boolean;
  /** Leaves of other rules that write this file but have no work in this cycle. */
  readonly others: ReadonlyMap<string, readonly LeafPath[]>;
  /** Whether these bytes are what we wrote last. */
  readonly isOurs: (content: Buffer) => boolean;
}

/**
 * Applies the pieces of all rules of one file as one edit. Pure: may be called again when the file has
 * changed. A piece that fails does not change the others.
 */
export function mergePieces(
  existing: Buffer | undefined,
  pieces: readonly Piece[],
  context: MergeContext,
): MergedFile {
  if (context.wholeFile) return mergeWhole(existing, pieces, context);
  const outcomes = new Map<string, PieceOutcome>();
  let text: string | undefined;
  try {
    text = existing === undefined ? undefined : decode(existing);
  } catch (error) {
    for (const piece of pieces) outcomes.set(piece.rule, { kind: "failed", error });
    return { content: undefined, outcomes };
  }
  const wanted = managedOf(pieces, context, outcomes);
  refuseOverlaps(pieces, wanted, context, outcomes);
  const kept = [...wanted.values(), ...context.others.values()].flat();
  const leaving = pieces.filter(({ content }) => content === undefined).flatMap(ownLeaves);
  let result = text;
  // Leaves are set before others are removed: a leaf that moved from one rule to another keeps its place.
  for (const piece of pieces.toSorted(
    (a, b) => Number(a.content === undefined) - Number(b.content === undefined),
  )) {
    if (outcomes.get(piece.rule)?.kind === "failed") continue;
    const before = result;
    try {
      const stale = piece.clean
        ? ownLeaves(piece).filter((leaf) => !kept.some((other) => touches(leaf, other)))
        : [];
      if (piece.content === undefined && (result === undefined || stale.length === 0)) {
        outcomes.set(piece.rule, { kind: "applied", changed: false, managed: [], found: [] });
        continue;
      }
      const edit = context.format.edit(result, piece.content ?? new Map(), {
        ...piece.options,
        remove: stale,
      });
      result = edit.text;
      const managed = piece.content === undefined ? [] : edit.managed;
      const known = { managed: piece.managedBefore, found: piece.foundBefore };
      const found = managed.length === 0 ? [] : foundLeaves(context.format, before, edit, known, leaving);
      outcomes.set(piece.rule, { kind: "applied", changed: result !== before, managed, found });
    } catch (error) {
      outcomes.set(piece.rule, { kind: "failed", error });
    }
  }
  return { content: result === undefined ? undefined : Buffer.from(result), outcomes };
}

/** A file that one rule owns from the first byte to the last. */
function mergeWhole(
  existing: Buffer | undefined,
  pieces: readonly Piece[],
  context: MergeContext,
): MergedFile {
  const outcomes = new Map<string, PieceOutcome>();
  let content: Buffer | undefined | "remove";
  for (const piece of pieces) {
    try {
      if (piece.content === undefined) {
        // A file that another program has changed since is not deleted.
        const goes =
          piece.clean && existing !== undefined && context.isOurs(existing) && content === undefined;
        if (goes) content = "remove";
        outcomes.set(piece.rule, { kind: "applied", changed: goes, managed: [], found: [] });
        continue;
      }
      const isText = context.format.name === "text";
      const base = existing === undefined || isText ? undefined : decode(existing);
      const edit = context.format.edit(base, piece.content, piece.options);
      const next = Buffer.from(edit.text);
      const foreign = existing !== undefined && !existing.equals(next) && !context.isOurs(existing);
      if (isText && foreign && !piece.overwrite) {
        throw new AgentError("target_foreign", "the file exists and was not written by this rule", {
          hint: "Move it away, or set target.overwrite: true; a copy is kept either way.",
        });
      }
      content = next;
      const changed = existing === undefined || !existing.equals(next);
      outcomes.set(piece.rule, { kind: "applied", changed, managed: edit.managed, found: [] });
    } catch (error) {
      outcomes.set(piece.rule, { kind: "failed", error });
    }
  }
  return { content, outcomes };
}

/** The leaves that each piece will manage. */
function managedOf(
  pieces: readonly Piece[],
  { format }: MergeContext,
  outcomes: Map<string, PieceOutcome>,
): Map<string, readonly LeafPath[]> {
  const wanted = new Map<string, readonly LeafPath[]>();
  for (const piece of pieces) {
    if (piece.content === undefined) continue;
    try {
      wanted.set(piece.rule, format.leaves(piece.content, piece.options));
    } catch (error) {
      outcomes.set(piece.rule, { kind: "failed", error });
    }
  }
  return wanted;
}

/** Rules that set the same key of one file would undo each other in every cycle. */
function refuseOverlaps(
  pieces: readonly Piece[],
  wanted: Map<string, readonly LeafPath[]>,
  { others }: MergeContext,
  outcomes: Map<string, PieceOutcome>,
): void {
  const clashes = new Map<string, AgentError>();
  for (const [rule, leaves] of wanted) {
    for (const [other, otherLeaves] of [...wanted, ...others]) {
      if (other === rule) continue;
      const leaf = leaves.find((own) => otherLeaves.some((theirs) => touches(own, theirs)));
      if (leaf === undefined) continue;
      const message = `rule '${other}' sets the key ${leaf.join(".")} of the same file`;
      clashes.set(rule, new AgentError("overlap", message, { hint: "A key can belong to one rule only." }));
    }
  }
  for (const piece of pieces) {
    const error = clashes.get(piece.rule);
    if (error === undefined) continue;
    outcomes.set(piece.rule, { kind: "failed", error });
    wanted.delete(piece.rule);
  }
}

/** The leaves that a rule has put into the file itself. */
function ownLeaves({ managedBefore, foundBefore }: Piece): LeafPath[] {
  return managedBefore.filter((leaf) => !foundBefore.some((found) => isSame(leaf, found)));
}

function isSame(a: LeafPath, b: LeafPath): boolean {
  return a.length === b.length && touches(a, b);
}

/** One of the paths leads to or through the other. */
function touches(a: LeafPath, b: LeafPath): boolean {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function decode(content: Buffer): string {
  try {
    // A byte order mark is part of the document and must come back.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    throw new AgentError("target_refused", "the existing file is not UTF-8 text");
  }
}

import { FILE_HEADERS_ONLY, formatPatch, structuredPatch, type StructuredPatchHunk } from "diff";

/** Lines shown around a change, as in `diff -u`. */
const CONTEXT_LINES = 3;
/** Removed and added lines above which the search for a short diff takes noticeable time: then every line is replaced. */
const MAX_CHANGED_LINES = 2000;
const MASKED_LINE = "••••";

/**
 * A unified diff of two texts that shows other lines than those it compares: `shown` has the same lines as `text` with every
 * value masked, so that a changed value shows as a changed line and nothing of it is told.
 *
 * @returns the diff with its two header lines, or an empty text if the texts are equal
 */
export function maskedDiff(
  path: string,
  old: { readonly text: string | undefined; readonly shown: string },
  next: { readonly text: string | undefined; readonly shown: string },
): string {
  if (old.text === next.text) return "";
  const before = linesOf(old.shown);
  const after = linesOf(next.shown);
  const hunks = hunksOf(old.text ?? "", next.text ?? "").map((hunk) => ({
    ...hunk,
    lines: masked(hunk, before, after),
  }));
  const patch = {
    oldFileName: old.text === undefined ? "/dev/null" : path,
    newFileName: next.text === undefined ? "/dev/null" : path,
    oldHeader: undefined,
    newHeader: undefined,
    hunks,
  };
  return formatPatch(patch, FILE_HEADERS_ONLY);
}

function hunksOf(old: string, next: string): StructuredPatchHunk[] {
  const options = { context: CONTEXT_LINES, stripTrailingCr: true, maxEditLength: MAX_CHANGED_LINES };
  const patch = structuredPatch("", "", old, next, undefined, undefined, options);
  if (patch !== undefined) return patch.hunks;
  const removed = linesOf(old).map((line) => `-${line}`);
  const added = linesOf(next).map((line) => `+${line}`);
  return [
    {
      oldStart: 1,
      oldLines: removed.length,
      newStart: 1,
      newLines: added.length,
      lines: [...removed, ...added],
    },
  ];
}

/** The lines of a hunk, each with the text that is shown for it. */
function masked(hunk: StructuredPatchHunk, before: readonly string[], after: readonly string[]): string[] {
  let old = hunk.oldStart - 1;
  let next = hunk.newStart - 1;
  return hunk.lines.map((line) => {
    const kind = line.charAt(0);
    // "\ No newline at end of file"
    if (kind === "\\") return line;
    const shown = kind === "+" ? after[next] : before[old];
    if (kind !== "+") old++;
    if (kind !== "-") next++;
    return kind + (shown ?? MASKED_LINE);
  });
}

function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

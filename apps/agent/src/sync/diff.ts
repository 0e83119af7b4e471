/** Lines shown around a change, as in `diff -u`. */
const CONTEXT_LINES = 3;
/** Above this many cells the exact comparison would take noticeable memory: then the middle is shown as replaced. */
const MAX_CELLS = 4_000_000;

interface Step {
  readonly kind: " " | "-" | "+";
  readonly old: number;
  readonly new: number;
}

/**
 * A unified diff of two texts that shows other lines than those it compares: `shownOld` and `shownNew` have the same
 * lines with every value masked, so that a changed value shows as a changed line and nothing of it is told.
 *
 * @returns the diff with its two header lines, or an empty text if the texts are equal
 */
export function maskedDiff(
  path: string,
  old: { readonly text: string | undefined; readonly shown: string },
  next: { readonly text: string | undefined; readonly shown: string },
): string {
  if (old.text === next.text) return "";
  const before = linesOf(old.text);
  const after = linesOf(next.text);
  const shownBefore = linesOf(old.shown);
  const shownAfter = linesOf(next.shown);
  const steps = compare(before, after);
  const output = [
    `--- ${old.text === undefined ? "/dev/null" : path}`,
    `+++ ${next.text === undefined ? "/dev/null" : path}`,
  ];
  for (const hunk of hunks(steps)) {
    const oldCount = hunk.filter((step) => step.kind !== "+").length;
    const newCount = hunk.filter((step) => step.kind !== "-").length;
    const first = hunk[0] ?? { old: 0, new: 0 };
    output.push(
      `@@ -${start(first.old, oldCount)},${oldCount} +${start(first.new, newCount)},${newCount} @@`,
    );
    for (const step of hunk) {
      const line = step.kind === "+" ? shownAfter[step.new] : shownBefore[step.old];
      output.push(step.kind + (line ?? "••••"));
    }
  }
  return `${output.join("\n")}\n`;
}

/** Line numbers count from 1; an empty side names the line before. */
function start(index: number, count: number): number {
  return count === 0 ? index : index + 1;
}

function linesOf(text: string | undefined): string[] {
  if (text === undefined || text === "") return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
}

/** The steps from one list of lines to the other, by longest common subsequence between the equal ends. */
function compare(a: readonly string[], b: readonly string[]): Step[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const steps: Step[] = [];
  for (let i = 0; i < head; i++) steps.push({ kind: " ", old: i, new: i });
  steps.push(...middle(a, b, head, a.length - tail, b.length - tail));
  for (let i = tail; i > 0; i--) steps.push({ kind: " ", old: a.length - i, new: b.length - i });
  return steps;
}

function middle(
  a: readonly string[],
  b: readonly string[],
  from: number,
  aEnd: number,
  bEnd: number,
): Step[] {
  const rows = aEnd - from;
  const columns = bEnd - from;
  const exact = (rows + 1) * (columns + 1) <= MAX_CELLS;
  const width = columns + 1;
  const lengths = new Uint32Array(exact ? (rows + 1) * width : 0);
  for (let i = exact ? rows - 1 : -1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      const same = a[from + i] === b[from + j];
      const down = lengths[(i + 1) * width + j] ?? 0;
      const right = lengths[i * width + j + 1] ?? 0;
      lengths[i * width + j] = same ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(down, right);
    }
  }
  const steps: Step[] = [];
  let i = 0;
  let j = 0;
  while (i < rows || j < columns) {
    const at = { old: from + i, new: from + j };
    if (exact && i < rows && j < columns && a[from + i] === b[from + j]) {
      steps.push({ kind: " ", ...at });
      i++;
      j++;
    } else if (
      i < rows &&
      (j >= columns || !exact || (lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0))
    ) {
      steps.push({ kind: "-", ...at });
      i++;
    } else {
      steps.push({ kind: "+", ...at });
      j++;
    }
  }
  return steps;
}

/** Groups the changes with their context; changes whose contexts touch share a hunk. */
function hunks(steps: readonly Step[]): Step[][] {
  const groups: Step[][] = [];
  let end = -1;
  for (const [index, step] of steps.entries()) {
    if (step.kind === " ") continue;
    const first = Math.max(0, index - CONTEXT_LINES);
    const last = Math.min(steps.length, index + CONTEXT_LINES + 1);
    if (first > end || groups.length === 0) groups.push(steps.slice(first, last));
    else groups.at(-1)?.push(...steps.slice(end, last));
    end = Math.max(end, last);
  }
  return groups;
}

/**
 * Conditions that a block meets in every feasible attack by a disturbance vector: Stevens and Shumow, "Speeding up detection of SHA-1
 * collision attacks using unavoidable attack conditions" (USENIX Security 2017). Each compares two bits of the expanded message. Where a
 * disturbance and its corrections must cancel, their bits are equal or different.
 *
 * The vectors of one type and one b are shifts of each other by K, and so are their conditions. A condition ends where its words leave
 * the steps 35 to 64 that attacks must control, or where SHA-1 changes its function.
 */
import { DISTURBANCE_VECTORS } from "./disturbance-vectors.ts";

/** Two bits of the expanded message that must be equal or different. Bit 0 is the lowest of a word. */
export interface Condition {
  readonly word: number;
  readonly bit: number;
  readonly otherWord: number;
  readonly otherBit: number;
  readonly isEqual: boolean;
  /** The set of the vectors that need this condition. */
  readonly vectors: number;
}

/**
 * A condition `W.B=W.B` or `W.B!W.B` (different), and the lowest and highest K that have it. Words are counted from K.
 */
type Shifted = readonly [condition: string, lowest: number, highest: number];

interface Family {
  readonly type: 1 | 2;
  readonly b: number;
  readonly conditions: readonly Shifted[];
}

const FAMILIES: readonly Family[] = [
  {
    type: 1,
    b: 0,
    conditions: [
      ["-16.3=-12.28", 51, 51],
      ["-14.4!-9.29", 50, 52],
      ["-13.4=-9.29", 48, 52],
      ["-10.4=-6.29", 45, 52],
      ["-8.29=-7.29", 48, 52],
      ["-7.29=-6.29", 47, 52],
      ["-6.4=-3.29", 43, 52],
      ["-6.4!-4.4", 43, 52],
      ["-4.4=-1.29", 43, 52],
      ["-4.4!-2.4", 43, 52],
      ["-4.29=-3.29", 44, 52],
      ["-2.4=1.29", 43, 52],
      ["-2.4!0.4", 43, 52],
      ["0.4=3.29", 43, 52],
      ["3.29=4.29", 43, 52],
      ["15.0!16.5", 43, 48],
      ["15.0!20.30", 43, 44],
      ["18.1!19.6", 43, 45],
    ],
  },
  {
    type: 1,
    b: 2,
    conditions: [
      ["-16.5=-12.30", 51, 51],
      ["-14.1!-13.6", 49, 51],
      ["-14.1=-14.6", 51, 51],
      ["-11.1!-10.6", 46, 51],
      ["-11.1!-9.1", 49, 51],
      ["-7.1!-6.6", 46, 51],
      ["-6.6=-4.6", 46, 51],
      ["-4.6=-2.6", 46, 51],
      ["-2.6=0.6", 46, 51],
      ["0.6=1.1", 46, 51],
      ["15.2!16.7", 46, 48],
    ],
  },
  {
    type: 2,
    b: 0,
    conditions: [
      ["-18.4!-16.4", 54, 56],
      ["-18.4=-15.29", 55, 56],
      ["-16.4!-14.4", 52, 56],
      ["-16.4=-13.29", 53, 56],
      ["-16.29=-15.29", 56, 56],
      ["-13.30!-12.3", 48, 52],
      ["-12.3=-8.28", 47, 56],
      ["-12.4=-8.29", 47, 56],
      ["-9.4=-5.29", 45, 56],
      ["-7.29=-6.29", 47, 56],
      ["-6.29=-5.29", 46, 56],
      ["-4.4=-1.29", 45, 56],
      ["-2.29=-1.29", 45, 56],
      ["-1.29=0.29", 45, 56],
      ["2.4=4.29", 45, 55],
      ["4.29=5.29", 45, 54],
      ["4.29!7.29", 45, 52],
      ["4.29!8.29", 45, 53],
      ["4.4=8.29", 45, 56],
      ["15.0!16.5", 45, 48],
      ["18.1!19.6", 45, 45],
    ],
  },
  {
    type: 2,
    b: 2,
    conditions: [
      ["-13.0!-12.5", 49, 51],
      ["-13.0!-8.30", 49, 51],
      ["-10.1!-9.6", 46, 51],
      ["-10.1!-8.1", 49, 51],
      ["-5.1!-4.6", 46, 51],
      ["-4.6=-3.1", 46, 51],
      ["1.1!2.6", 46, 51],
      ["2.6=4.6", 46, 51],
      ["2.6=5.1", 46, 51],
      ["15.2!16.7", 46, 48],
    ],
  },
];

/** The conditions of all vectors, each once. */
export const UNAVOIDABLE_CONDITIONS: readonly Condition[] = listConditions();

/** The set of the vectors by which a block with these 80 expanded message words can belong to an attack. */
export function possibleVectors(words: Int32Array): number {
  let vectors = -1;
  for (const condition of UNAVOIDABLE_CONDITIONS) {
    const one = words[condition.word]! >>> condition.bit;
    const other = words[condition.otherWord]! >>> condition.otherBit;
    if (((one ^ other) & 1) === (condition.isEqual ? 1 : 0)) vectors &= ~condition.vectors;
  }
  return vectors;
}

function listConditions(): Condition[] {
  const found = new Map<string, Condition>();
  for (const [index, { type, k, b }] of DISTURBANCE_VECTORS.entries()) {
    const family = FAMILIES.find((one) => one.type === type && one.b === b);
    for (const [text, lowest, highest] of family?.conditions ?? []) {
      if (k < lowest || k > highest) continue;
      const condition = parse(text, k);
      const key = JSON.stringify(condition);
      const vectors = (found.get(key)?.vectors ?? 0) | (1 << index);
      found.set(key, { ...condition, vectors });
    }
  }
  return [...found.values()];
}

function parse(text: string, k: number): Omit<Condition, "vectors"> {
  const [word = 0, bit = 0, otherWord = 0, otherBit = 0] = text.split(/[.=!]/).map(Number);
  return { word: k + word, bit, otherWord: k + otherWord, otherBit, isEqual: text.includes("=") };
}

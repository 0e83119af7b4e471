import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Choices, corpus } from "../../test/editing.test-kit.ts";
import { readPlainYaml } from "./plain-read.ts";
import { readAnyYaml } from "./read.ts";

const KEYS = ["a", "b", "c d", '"q"', "'s'", "k1", "x-y", "k:x", "日本", '"e\\t"', "<<", "...x", "-k"];
// `%` is the indentation of the lines of a block.
const SCALARS = [
  `1|1.5|0x1f|.inf|1e3|-3|~|null|True|x y|'q r'|'it''s'|"d"|"e\\"s\\n\\u00e9"|''|a#b|http://h/p?q=1|-|-x`,
  `[]|{}|[1, a]|{z: y, "q": [x]}|[a b, {c: 'd'}]|&n v|*n|!t v|>|two\n%lines|"two\n%lines"|`,
];
const BLOCKS = ["|\n%lit\n%  more\n\n%end", "|-\n%one", "|\n\n%late\n", "|+\n%k\n\n"];
const VALUES = [...SCALARS.flatMap((list) => list.split("|")), ...BLOCKS];
const EDITS = [
  "--- \n",
  ...Array.from(" :-#'\"[]{},|>&*!?a0\\%~<.=\t"),
  "  ",
  "\n",
  "\r\n",
  "\r",
  "\u2028",
  "---\n",
];

/** The lines of a collection at `column`, in a random layout. */
function lines(column: number, depth: number, choices: Choices): string {
  const pad = " ".repeat(column);
  const isList = choices.chance(35);
  const keys = new Set(Array.from({ length: 1 + choices.below(4) }, () => choices.pick(KEYS)));
  let text = "";
  for (const key of keys) {
    if (choices.chance(15)) text += `${" ".repeat(choices.below(6))}# note\n`;
    if (choices.chance(10)) text += "\n";
    const head = pad + (isList ? "-" : `${key}:`);
    const note = choices.chance(20) ? "  # c" : "";
    if (depth < 4 && choices.chance(35)) {
      const inner = lines(column + (isList ? 2 : choices.pick([0, 1, 2, 4])), depth + 1, choices);
      const isCompact = isList && choices.chance(50) && !/^\s*(?:#|\n)/.test(inner);
      text += isCompact ? `${head} ${inner.slice(column + 2)}` : `${head}${note}\n${inner}`;
      continue;
    }
    const value = choices.pick(VALUES).replaceAll("%", " ".repeat(column + 1 + choices.below(3)));
    text += `${head}${value === "" ? "" : ` ${value}`}${value.includes("\n") ? "" : note}\n`;
  }
  return text;
}

/** Characters put in, taken out and exchanged. */
function spoil(text: string, choices: Choices): string {
  let spoilt = text;
  for (let left = choices.pick([0, 0, 1, 3]); left > 0; left--) {
    const at = choices.below(spoilt.length + 1);
    const put = choices.chance(66) ? choices.pick(EDITS) : "";
    spoilt = spoilt.slice(0, at) + put + spoilt.slice(at + choices.below(3));
  }
  if (choices.chance(15)) spoilt = spoilt.replaceAll("\n", "\r\n");
  return choices.chance(15) ? spoilt.replace(/\r?\n$/, "") : spoilt;
}

test("readPlainYaml: whatever it reads, it reads like the whole grammar; where that finds a fault, it reads nothing", () => {
  const files = [corpus("compose.yaml"), corpus("kubeconfig.yaml")];
  let read = 0;
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const choices = new Choices(seed);
      const base = choices.chance(10)
        ? choices.pick(files)
        : choices.pick(["", "", "---\n", "# top\n"]) + lines(choices.pick([0, 0, 0, 2]), 0, choices);
      const text = spoil(base, choices);
      const plain = readPlainYaml(text);
      if (plain === undefined) return;
      read++;
      assert.deepEqual(plain, readAnyYaml(text, "existing"), JSON.stringify(text));
    }),
    { numRuns: 3_000 },
  );
  assert.ok(read > 100, `only ${read} documents were plain`);
});

test("readPlainYaml: a kubeconfig and a document with every plain form are read by it", () => {
  const every = `# top
---
map: {a: 1, "b": [x y, 'z']} # c
"quoted": "e\\n"
'single': 'it''s'
none:
list:
- a
-   b: |-
      literal

      text
    c: x
- - nested
-
  - later
url: http://h/p?q=1#f
`;
  for (const text of [corpus("kubeconfig.yaml"), every, every.replaceAll("\n", "\r\n")]) {
    assert.deepEqual(readPlainYaml(text), readAnyYaml(text, "existing"));
    assert.notEqual(readPlainYaml(text), undefined);
  }
});

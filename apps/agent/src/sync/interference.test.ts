import assert from "node:assert/strict";
import { test } from "node:test";
import {
  documentFormat,
  sameShape,
  DocumentEditError,
  type EditMap,
  type FormatName,
} from "@devplat/document-edit";
import fc from "fast-check";
import { findInterference } from "./interference.ts";

/** Templates with three values and two settings of their own, in which the values' leaves are `a`, `c` and `e`. */
const TEMPLATES: readonly [FormatName, string][] = [
  ["json", '{"a": "{0}", "b": "own", "c": "{1}", "d": "own", "e": {2}}'],
  ["json", '{"a": "{0}",\n "b": "own",\n "c": "{1}",\n "d": "own",\n "e": {2}}\n'],
  ["yaml", "{a: {0}, b: own, c: '{1}', d: own, e: {2}}"],
  ["yaml", 'a: {0}\nb: own\nc: "{1}"\nd: own\ne: {2}\n'],
  ["toml", 'a = "{0}"\nb = "own"\nc = \'{1}\'\nd = "own"\ne = {2}\n'],
  ["toml", 'top = { a = "{0}", b = "own", c = "{1}", d = "own", e = {2} }\n'],
  ["dotenv", "a={0}\nb=own\nc=\"{1}\"\nd=own\ne='{2}'\n"],
  ["properties", "a={0}\nb=own\nc={1}\nd=own\ne={2}\n"],
];
const PIECES = [
  '"',
  "'",
  ", ",
  "b",
  "own",
  "evil",
  ": ",
  "=",
  "#",
  " #",
  "//",
  "/*",
  "*/",
  "}",
  "{",
  "]",
  "[",
  "\n",
  "\\",
  "1",
  '"""',
  "'''",
  "x",
];

test("findInterference: whatever the values, a content that it lets pass has the template's own settings as they were written", () => {
  const value = fc.array(fc.constantFrom(...PIECES), { maxLength: 9 }).map((pieces) => pieces.join(""));
  const attack = fc.constantFrom(
    'x", "b": "evil", "c": "y", "d": "own", "e": 1} //',
    '1", "b": "evil", /*',
    '*/ "c": "',
    "1, b: evil, c: '",
    "'",
    '"',
  );
  const any = fc.oneof({ weight: 3, arbitrary: value }, { weight: 1, arbitrary: attack });
  const settingsOf = (content: EditMap): unknown => {
    const top = content.get("top");
    const map = top instanceof Map ? (top as EditMap) : content;
    return [map.get("b"), map.get("d")];
  };
  fc.assert(
    fc.property(fc.constantFrom(...TEMPLATES), fc.tuple(any, any, any), ([name, template], values) => {
      const format = documentFormat(name);
      const render = (replace: (index: number, text: string) => string): EditMap =>
        format.parse(
          template.replace(/\{([0-2])\}/g, (_, digit: string) =>
            replace(Number(digit), values[Number(digit)] ?? ""),
          ),
        );
      const read = (replace: (index: number, text: string) => string): EditMap | undefined => {
        try {
          return render(replace);
        } catch (error) {
          if (error instanceof DocumentEditError) return undefined;
          throw error;
        }
      };
      const content = read((_, text) => text);
      const plain = read(() => "1");
      // What does not keep its keys is refused before.
      if (content === undefined || plain === undefined || !sameShape(content, plain)) return;
      const printed = values.map((text) => ({ text, line: 1, safe: false }));
      if (findInterference({ printed, content, render, valuesAsKeys: false }) !== undefined) return;
      assert.deepEqual(settingsOf(content), ["own", "own"]);
    }),
    { numRuns: 3_000 },
  );
});

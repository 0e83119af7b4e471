import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parse, stringify } from "yaml";
import { documentFormat, type EditMap } from "../src/index.ts";
import { edit } from "./editing.test-kit.ts";

type Item = { readonly name: string } & Readonly<Record<string, string>>;

const anyName = fc.stringMatching(/^[a-z]{1,3}$/);
const anyItem: fc.Arbitrary<Item> = fc
  .tuple(
    anyName,
    fc.dictionary(fc.constantFrom("server", "token", "user"), fc.stringMatching(/^[a-z ]{0,6}$/)),
  )
  .map(([name, fields]) => ({ ...fields, name }));
const anyList = fc.uniqueArray(anyItem, { selector: ({ name }) => name, minLength: 1, maxLength: 4 });

const FORMATS = {
  yaml: (list: readonly Item[]) => [
    stringify({ top: 1, deep: { list }, end: 2 }),
    stringify({ deep: { list } }, { indentSeq: false }),
    stringify({ deep: { list } }, { collectionStyle: "flow" }),
  ],
  json: (list: readonly Item[]) => [
    JSON.stringify({ top: 1, deep: { list }, end: 2 }, null, 2),
    JSON.stringify({ deep: { list } }),
    JSON.stringify({ deep: { list } }, null, "\t"),
  ],
} as const;
const OPTIONS = { lists: { "deep.list": "name" } };

const asContent = (list: readonly Item[]): EditMap =>
  new Map([["deep", new Map([["list", list.map((item) => new Map(Object.entries(item)))]])]]);

for (const [name, write] of Object.entries(FORMATS) as [keyof typeof FORMATS, (typeof FORMATS)["yaml"]][]) {
  test(`${name} lists: merges entries by name in order, new ones last [agent 14.14]`, () => {
    fc.assert(
      fc.property(anyList, anyList, (present, wanted) => {
        const expected = [
          ...present.map((item) => ({ ...item, ...wanted.find((other) => other.name === item.name) })),
          ...wanted.filter((item) => !present.some((other) => other.name === item.name)),
        ];
        for (const before of write(present)) {
          const after = edit(name, before, asContent(wanted), OPTIONS);
          assert.deepEqual((parse(after) as { deep: { list: Item[] } }).deep.list, expected, after);
        }
      }),
      { numRuns: 100 },
    );
  });

  test(`${name} lists: removing added entries gives the old text`, () => {
    const format = documentFormat(name);
    fc.assert(
      fc.property(anyList, anyList, (present, wanted) => {
        const fresh = wanted.filter((item) => !present.some((other) => other.name === item.name));
        for (const before of write(present)) {
          const added = format.edit(before, asContent(fresh), OPTIONS);
          assert.equal(
            format.edit(added.text, new Map(), { ...OPTIONS, remove: added.managed }).text,
            before,
          );
        }
      }),
      { numRuns: 100 },
    );
  });
}

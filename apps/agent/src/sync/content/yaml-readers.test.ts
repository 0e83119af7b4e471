import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after as afterAll, test } from "node:test";
import fc from "fast-check";
import { documentFormat, type EditMap, type EditValue } from "@devplat/document-edit";
import { readAll } from "./readers.test-kit.ts";

const folder = mkdtempSync(join(tmpdir(), "yaml-"));
afterAll(() => rmSync(folder, { recursive: true }));

const READERS = ["PyYAML", "ruamel.yaml"];
const yaml = documentFormat("yaml");

/** Holds that both readers find the same value in two texts at a path, and each of the other values in the second. */
async function assertReadAlike(
  cases: readonly {
    before: string;
    after: string;
    path: readonly string[];
    added: readonly (readonly string[])[];
  }[],
): Promise<void> {
  const readings = cases.flatMap(({ before, after, path, added }) =>
    READERS.flatMap((reader) => [
      { reader, text: before, path },
      { reader, text: after, path },
      ...added.map((each) => ({ reader, text: after, path: each })),
    ]),
  );
  const found = await readAll(readings, folder);
  let at = 0;
  for (const { after, added } of cases) {
    for (const reader of READERS) {
      const [before, now, ...others] = found.slice(at, at + 2 + added.length);
      at += 2 + added.length;
      assert.ok(before !== undefined && "value" in before, reader);
      assert.deepEqual(now, before, `${reader}: ${after}`);
      assert.deepEqual(
        others,
        added.map(() => ({ value: "new" })),
        `${reader}: ${after}`,
      );
    }
  }
}

test("yaml edit: a final block scalar without a line break keeps its value for readers", async () => {
  const content: EditMap = new Map<string, EditValue>([
    ["added", "new"],
    ["in", new Map([["more", "new"]])],
  ]);
  const added = [["added"], ["in", "more"]];
  await assertReadAlike(
    ["|", ">", "|+", "|-", "|2", ">-"].flatMap((header) =>
      [
        { before: `a: 1\nscript: ${header}\n  one\n  two`, path: ["script"] },
        { before: `script: ${header}\n  one`, path: ["script"] },
        { before: `a: 1\nin:\n  b: 2\n  # note\n  script: ${header}\n    one`, path: ["in", "script"] },
      ].map(({ before, path }) => ({ before, path, added, after: yaml.edit(before, content).text })),
    ),
  );
});

test("yaml remove: a block scalar that becomes the last keeps its value for readers", async () => {
  await assertReadAlike(
    ["|", ">", "|-"].map((header) => {
      const before = `script: ${header}\n  one\nours: 1`;
      const after = yaml.edit(before, new Map(), { remove: [["ours"]] }).text;
      assert.ok(!after.includes("ours"));
      return { before, after, path: ["script"], added: [] };
    }),
  );
});

const ALL_READERS = [...READERS, "yaml", "yaml (1.1)"];

/** Files in which a value, or a key and its value, goes into brackets: the edit, and where readers find the text. */
const FLOW_PLACES: readonly {
  readonly before: string;
  readonly content: (text: string) => EditMap;
  readonly lists?: Readonly<Record<string, string>>;
  readonly path: (text: string) => readonly string[];
  readonly isKey?: boolean;
}[] = [
  {
    before: "users: [{name: dev, user: {token: old}}]\n",
    content: (text) =>
      new Map([
        [
          "users",
          [
            new Map<string, EditValue>([
              ["name", "dev"],
              ["user", new Map([["token", text]])],
            ]),
          ],
        ],
      ]),
    lists: { users: "name" },
    path: () => ["users", "0", "user", "token"],
  },
  { before: "{tok: old}\n", content: (text) => new Map([["tok", text]]), path: () => ["tok"] },
  { before: "{tok: 'old'}\n", content: (text) => new Map([["tok", text]]), path: () => ["tok"] },
  { before: "{tok: }\n", content: (text) => new Map([["tok", text]]), path: () => ["tok"] },
  { before: "{other: 1}\n", content: (text) => new Map([["tok", text]]), path: () => ["tok"] },
  { before: "{}\n", content: (text) => new Map([["tok", text]]), path: () => ["tok"] },
  { before: "l: [a, b]\n", content: (text) => new Map([["l", ["a", text]]]), path: () => ["l", "1"] },
  {
    before: "in: {a: 1}\n",
    content: (text) => new Map([["in", new Map([[text, "new"]])]]),
    path: (text) => ["in", text],
    isKey: true,
  },
  { before: "a: 1\n", content: (text) => new Map([[text, "new"]]), path: (text) => [text], isKey: true },
];

const URLS = ["https://sso.example/?t=1", "https://u:p@h/x?y=1", "http://[::1]:80/?a,b", "a:b", "a?b", "é?x"];
const SIGNS = "?:,[]{}#&*!|>'\"%@`-=~<$ ".split("");
const ODD_TEXTS = [
  ...URLS,
  ...SIGNS.flatMap((sign) => [sign, `${sign}a`, `a${sign}`, `a ${sign}b`, `a${sign} b`]),
  ...SIGNS.flatMap((sign) => [`?${sign}`, `:${sign}`, `${sign}?`, `${sign}:`]),
];

/** Holds that each reader finds each text where the edit of its place has put it. */
async function assertFlow(texts: readonly string[]): Promise<void> {
  const readings = texts.flatMap((text) =>
    FLOW_PLACES.flatMap(({ before, content, lists, path, isKey }) => {
      const after = yaml.edit(before, content(text), lists === undefined ? {} : { lists }).text;
      const expected = isKey === true ? "new" : text;
      return ALL_READERS.map((reader) => ({ reader, text: after, path: path(text), expected }));
    }),
  );
  const found = await readAll(readings, folder);
  const problems = readings.flatMap(({ reader, text, expected }, index) => {
    const answer = found[index];
    const isRight = answer !== undefined && "value" in answer && answer.value === expected;
    return isRight
      ? []
      : [`${reader}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(answer)} in ${text}`];
  });
  assert.deepEqual(problems.slice(0, 20), [], `${problems.length} problems`);
}

test("yaml edit: readers of 1.1 and 1.2 read odd keys and values in brackets unchanged [agent 14.12]", async () => {
  await assertFlow(ODD_TEXTS);
});

test("yaml edit: readers of 1.1 and 1.2 read random keys and values in brackets alike", async () => {
  const piece = fc.oneof(
    fc.constantFrom(...SIGNS, ...URLS, "a", "1", "true", "\n", "\t"),
    fc.string({ maxLength: 3 }),
  );
  const text = fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join(""));
  await assertFlow(fc.sample(text, 100));
});

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parse } from "smol-toml";
import { documentFormat, type EditMap, type EditValue } from "../index.ts";
import {
  Choices,
  anyText,
  assertKeepsLines,
  contentFor,
  corpus,
  edit,
  plainMerge,
  assertRefuses,
} from "../../test/editing.test-kit.ts";

const toml = documentFormat("toml");

/** Result of smol-toml, with JSON values. */
const independent = (text: string): unknown => JSON.parse(JSON.stringify(parse(text.replace(/^\uFEFF/, ""))));

const anyKey = fc.oneof(
  { weight: 4, arbitrary: fc.stringMatching(/^[a-z][a-z0-9_-]{0,5}$/) },
  fc.constantFrom("a.b", "a b", "é", "1", "'q", '"', "#"),
);
const anyScalar: fc.Arbitrary<EditValue> = fc.oneof(
  { weight: 4, arbitrary: anyText },
  fc.boolean(),
  fc.constantFrom("0", "-1", "1.5", "1e3", "1_000", "0xff").map((number) => ({ number })),
);
const anyTable: fc.Arbitrary<EditMap> = fc.letrec<{ map: EditMap; value: EditValue }>((tie) => ({
  map: fc.array(fc.tuple(anyKey, tie("value")), { maxLength: 4 }).map((entries) => new Map(entries)),
  value: fc.oneof(
    { depthSize: "small", maxDepth: 3 },
    { weight: 5, arbitrary: anyScalar },
    { weight: 2, arbitrary: tie("map") },
    { weight: 1, arbitrary: fc.array(tie("value"), { maxLength: 3 }) },
  ),
})).map;

function plain(value: EditValue): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, inner]) => [key, plain(inner)]));
  if (Array.isArray(value)) return value.map((item: EditValue) => plain(item));
  if (typeof value === "object" && value !== null)
    return Number((value as { number: string }).number.replace("_", ""));
  return value;
}

/** Prints in a random layout: headers, keys with dots, inline tables, arrays of tables, comments, quotes, line endings. */
function print(document: EditMap, choices: Choices): string {
  const ending = choices.pick(["\n", "\r\n"]);
  const lines: string[] = [];
  const quoted = (text: string): string =>
    JSON.stringify(text).replaceAll(/[\x7f-\x9f]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`);
  const keyOf = (key: string): string =>
    /^[a-z0-9_-]+$/.test(key) && choices.chance(80) ? key : quoted(key);
  const note = (): string => (choices.chance(20) ? choices.pick(["  # note: it's", " # [x]", "\t#"]) : "");
  const inline = (value: EditValue): string => {
    if (value instanceof Map)
      return `{${[...value].map(([key, item]) => ` ${keyOf(key)} = ${inline(item)}`).join(",")} }`;
    if (Array.isArray(value)) {
      const items = value.map((item: EditValue) => inline(item));
      return choices.chance(30) && items.length > 0
        ? `[${ending}  ${items.join(`, # c${ending}  `)}${choices.pick([",", ""])}${ending}]`
        : `[${items.join(", ")}]`;
    }
    if (typeof value !== "string")
      return typeof value === "object" && value !== null
        ? (value as { number: string }).number
        : String(value);
    if (/^[ -&(-~]*$/.test(value) && choices.chance(40)) return `'${value}'`;
    if (/^[a-z\n]+$/.test(value) && choices.chance(50) && ending === "\n") return `"""\n${value}"""`;
    return quoted(value);
  };
  const table = (path: readonly string[], map: EditMap): void => {
    const later: [string, EditMap][] = [];
    for (const [key, value] of map) {
      if (choices.chance(15)) lines.push(choices.pick(["", "# about = it", "  # [not.a.table]"]));
      if (value instanceof Map && value.size > 0 && choices.chance(60)) later.push([key, value]);
      else if (
        value instanceof Map &&
        value.size > 0 &&
        [...(value as EditMap).values()].every((item) => !(item instanceof Map)) &&
        choices.chance(40)
      ) {
        for (const [inner, item] of value as EditMap)
          lines.push(`${keyOf(key)}.${keyOf(inner)} = ${inline(item)}${note()}`);
      } else lines.push(`${keyOf(key)}${choices.pick([" = ", "=", " =  "])}${inline(value)}${note()}`);
    }
    for (const [key, value] of later) {
      const inner = [...path, key];
      const skipsHeader =
        [...value.values()].every((item) => item instanceof Map && item.size > 0) && choices.chance(0);
      if (!skipsHeader)
        lines.push(
          ...choices.pick([[], [""]]),
          `[${inner.map(keyOf).join(choices.pick([".", " . "]))}]${note()}`,
        );
      table(inner, value);
    }
  };
  table([], document);
  return choices.pick(["", "\uFEFF"]) + lines.join(ending) + choices.pick(["", ending]);
}

/** Whether the content keeps the tables of the document. A value in place of a table is refused and has its own test. */
function keepsTables(document: EditMap, content: EditMap): boolean {
  return [...content].every(([key, value]) => {
    const present = document.get(key);
    return !(present instanceof Map) || (value instanceof Map && keepsTables(present, value));
  });
}

/** TOML has no null. */
function hasNull(value: EditValue): boolean {
  if (value instanceof Map) return [...(value as EditMap).values()].some(hasNull);
  return Array.isArray(value) ? value.some(hasNull) : value === null;
}

const RUNS = 200;

test("toml edit: another parser reads the merged value of any document", () => {
  const cases = anyTable.chain((document) =>
    fc.tuple(
      fc.constant(document),
      contentFor(document, anyScalar, anyTable).filter(
        (content) => keepsTables(document, content) && !hasNull(content),
      ),
      fc.integer(),
    ),
  );
  fc.assert(
    fc.property(cases, ([document, content, seed]) => {
      const before = print(document, new Choices(seed));
      assert.deepEqual(independent(before), plain(document), before);
      const after = edit("toml", before, content);
      assert.deepEqual(independent(after), plainMerge(plain(document), plain(content)), after);
    }),
    { numRuns: RUNS },
  );
});

test("toml edit: other lines stay, and removing added keys gives the old text [agent 14.4]", () => {
  const cases = fc.tuple(
    anyTable,
    fc.uniqueArray(fc.stringMatching(/^new[a-z]{1,4}$/), { minLength: 1, maxLength: 3 }),
    anyText,
    fc.integer(),
  );
  fc.assert(
    fc.property(cases, ([document, keys, value, seed]) => {
      const before = print(document, new Choices(seed));
      const content = new Map<string, EditValue>(
        keys.map((key, index) => [key, index === 0 ? value : new Map([["in", value]])]),
      );
      const added = toml.edit(before, content);
      assertKeepsLines(
        added.text.replace(/^\uFEFF/, ""),
        before
          .replace(/^\uFEFF/, "")
          .split(/(?<=\n)/)
          .slice(0, -1),
      );
      const removed = toml.edit(added.text, new Map(), { remove: added.managed });
      const squeeze = (text: string): string => text.replaceAll(/(?:\r?\n)+/g, "\n").trim();
      assert.equal(squeeze(removed.text), squeeze(before));
    }),
    { numRuns: RUNS },
  );
});

test("toml edit: a cargo config keeps quotes, comments, arrays and order", () => {
  const before = corpus("cargo-config.toml");
  const after = edit(
    "toml",
    before,
    '[registries.mine]\ntoken = "new"\n[registries.other]\nindex = "sparse+https://other.example.org/"\n[net]\nretry = 3\n[build]\nrustflags = ["-C", "opt-level=3"]',
  );
  assert.equal(
    after,
    before
      .replace("token = 'old' # rotated", "token = 'new' # rotated")
      .replace("retry = 2", "retry = 3")
      .replace('    "-C", # codegen\n    "target-cpu=native",\n', '    "-C",\n    "opt-level=3",\n') +
      '\n[registries.other]\nindex = "sparse+https://other.example.org/"\n',
  );
});

test("toml edit: edits dotted keys, inline tables and arrays of tables in their form", () => {
  assert.equal(
    edit("toml", "a.b = 1\na.c = 2 # c\nz = 1\n", "a.d = 3\na.b = 4"),
    "a.b = 4\na.c = 2 # c\na.d = 3\nz = 1\n",
  );
  assert.equal(
    edit("toml", "t = { x = 1, y = {} } # t\n", "t = {x = 2, y = {q = 1}, z = 3}"),
    "t = { x = 2, y = { q = 1 }, z = 3 } # t\n",
  );
  assert.equal(
    edit("toml", "[a]\nx = 1\n[[b]]\nn = 1 # one\n[[b]]\nn = 2\n[c]\n", "b = [{n = 3}]\n[c]\nq = 1"),
    "[a]\nx = 1\n[[b]]\nn = 3\n# one\n[c]\nq = 1\n",
  );
  assert.equal(edit("toml", "[a.b]\nx = 1\n", "[a]\ny = 2"), "[a.b]\nx = 1\n\n[a]\ny = 2\n");
  assert.equal(
    edit("toml", "# c\n\n# about a\n[a]\nx = 1\n", "y = 2"),
    "# c\n\ny = 2\n\n# about a\n[a]\nx = 1\n",
  );
  assert.equal(edit("toml", "a = []\nb = [1]\n", 'a = [1]\nb = ["x"]'), 'a = [1]\nb = ["x"]\n');
});

test("toml edit: a new document has values first, then tables", () => {
  assert.equal(
    edit("toml", undefined, 'b.c = "x"\na = 1\n[[q]]\nz = 1\n[[q]]\nw = {a = 1979-05-27}'),
    'a = 1\n\n[b]\nc = "x"\n\n[[q]]\nz = 1\n\n[[q]]\n\n[q.w]\na = 1979-05-27\n',
  );
});

test("toml edit: the quotes of a string stay if they can represent the value", () => {
  assert.equal(
    edit(
      "toml",
      "a = 'x'\nb = \"x\"\nc = '''\nx\n'''\nd = \"\"\"\nx\"\"\"\n",
      new Map([
        ["a", "y"],
        ["b", "y"],
        ["c", "p\nq\n"],
        ["d", 'p\n"""q"'],
      ]),
    ),
    'a = \'y\'\nb = "y"\nc = \'\'\'\np\nq\n\'\'\'\nd = """\np\n""\\"q\\""""\n',
  );
  assert.equal(edit("toml", "a = 'x'\n", new Map([["a", "it's\n"]])), 'a = "it\'s\\n"\n');
});

test("toml remove: removes a table with its last key, keeps comments, other tables", () => {
  assert.equal(
    edit("toml", "[a]\nx = 1\n\n[b] # b\ny = 1 # why\nz.w = 1\nz.v = 2\n", "", {
      remove: [
        ["a", "x"],
        ["b", "y"],
        ["b", "z", "w"],
      ],
    }),
    "\n[b] # b\n# why\nz.v = 2\n",
  );
  assert.equal(
    edit("toml", "a = { x = 1, y = 2 }\n\n[b.c]\nz = 1\n", "", {
      remove: [
        ["a", "x"],
        ["b", "c", "z"],
      ],
    }),
    "a = { y = 2 }\n",
  );
  assert.equal(edit("toml", "[a]\nx = 1\n[b]\ny = 1\n", "[b]\ny = 1", { merge: "replace" }), "[b]\ny = 1\n");
});

test("toml edit: a table is not replaced by a value, nor is null written", () => {
  assertRefuses("unsupported", () => edit("toml", "[a]\nx = 1\n", "a = 1"));
  assertRefuses("unsupported", () => edit("toml", "a.x = 1\n", "a = 1"));
  assertRefuses("unsupported", () => edit("toml", "", new Map([["a", null]])));
});

test("toml parse: malformed and ambiguous input is refused and not quoted", () => {
  const secret = "hunter2";
  for (const text of [
    "a = hunter2",
    'a = "hunter2',
    "hunter2",
    "a = 1 hunter2",
    "[hunter2",
    "a = [hunter2]",
    "a = '''hunter2",
    'a = "\\hunter2"',
    "a = {hunter2",
    "= 1",
    "a.= 1",
    "a = 01",
    "a = 1__0",
    'a = "x\ny"',
    "[[a]",
    "a = 2024-1-1",
    '"""a""" = 1',
    'a = "\u0001"',
  ]) {
    assertRefuses("unparsable_content", () => toml.parse(text), [secret]);
    assertRefuses("unparsable_existing", () => toml.edit(text, new Map([["z", "1"]])), [secret]);
  }
  for (const text of [
    "a = 1\na = 2",
    "[a]\n[a]",
    "a = 1\n[a]",
    "a = {x = 1}\n[a.b]",
    "a = [{}]\n[[a]]",
    "a.b = 1\n[a]",
    "[[a]]\n[a]",
    "a = {x = 1, x = 2}",
    "a.b = 1\na.b.c = 2",
  ]) {
    assertRefuses("unparsable_content", () => toml.parse(text));
    assertRefuses("unsupported", () => toml.edit(text, new Map([["z", "1"]])));
  }
  assertRefuses("unparsable_existing", () => toml.edit(`a = ${"[".repeat(50_000)}`, new Map()));
});

test("toml parse: numbers and dates are kept as they are written", () => {
  const text =
    "a = 0xDEAD_beef\nb = 1979-05-27T07:32:00.999-07:00\nc = 1979-05-27 07:32:00\nd = +inf\ne = 07:32:00\nf = 9_223_372_036_854_775_807\n";
  assert.deepEqual(
    [...toml.parse(text)].map(([, value]) => (value as { number: string }).number),
    [
      "0xDEAD_beef",
      "1979-05-27T07:32:00.999-07:00",
      "1979-05-27 07:32:00",
      "+inf",
      "07:32:00",
      "9_223_372_036_854_775_807",
    ],
  );
});

test("toml mask: keeps the lines, and no value and no comment", () => {
  assert.equal(
    toml.mask("# hunter1\na = [1, '''\nhunter2\n  x''', { z = 2 }] # y\n[t]\n"),
    "••••\na = [••••, ••••\n••••\n  ••••, { z = •••• }] ••••\n[t]\n",
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isMap, isScalar, isSeq, parse, parseDocument } from "yaml";
import { documentFormat, type EditMap, type EditValue } from "../index.ts";
import {
  Choices,
  NASTY,
  anyMap,
  anyText,
  assertKeepsLines,
  contentFor,
  corpus,
  edit,
  plain,
  plainMerge,
  assertRefuses,
} from "../../test/editing.test-kit.ts";

const RUNS = 200;
const yaml = documentFormat("yaml");

/** Result of the `yaml` package, with numbers as source text. */
function independent(text: string): unknown {
  const visit = (node: unknown): unknown => {
    if (isMap(node)) {
      return Object.fromEntries(
        node.items.map(({ key, value }) => [(key as { source: string }).source, visit(value)]),
      );
    }
    if (isSeq(node)) return node.items.map(visit);
    if (!isScalar(node)) return null;
    return typeof node.value === "number" ? `#${node.source}` : node.value;
  };
  const document = parseDocument(text);
  assert.deepEqual(document.errors, []);
  return document.contents === null ? {} : (visit(document.contents) ?? {});
}

/** Prints in a random layout: indentation, dashes, flow collections, quotes, comments, line endings. */
function print(value: EditMap, choices: Choices): string {
  const ending = choices.pick(["\n", "\r\n"]);
  const unit = choices.pick([1, 2, 4]);
  const dash = choices.pick([0, unit]);
  const scalar = (inner: EditValue): string => {
    if (typeof inner !== "string")
      return typeof inner === "object" && inner !== null
        ? (inner as { number: string }).number
        : String(inner);
    const style = choices.below(3);
    if (style === 0 && /^[a-z]{4,}$/.test(inner) && !/^(?:null|true)$/.test(inner)) return inner;
    if (style === 1 && /^[ -~é日本]*$/.test(inner)) return `'${inner.replaceAll("'", "''")}'`;
    return quoted(inner);
  };
  const quoted = (inner: string): string =>
    JSON.stringify(inner).replace(
      /[\x7f-\x9f\u2028\u2029\ufeff]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  const keyOf = (key: string): string =>
    /^[a-z][a-z_]+$/.test(key) && !/^(?:on|no|null)$/.test(key) ? key : quoted(key);
  const note = (): string => (choices.chance(20) ? choices.pick(["  # note: it's", " #", "\t# [x"]) : "");
  const flow = (inner: EditValue): string => {
    if (inner instanceof Map)
      return `{${[...inner].map(([key, item]) => `${keyOf(key)}: ${flow(item)}`).join(choices.pick([", ", ","]))}}`;
    if (Array.isArray(inner)) return `[${inner.map((item: EditValue) => flow(item)).join(", ")}]`;
    return scalar(inner);
  };
  /** Lines of a value below a key or dash at `column`. The first line may follow the key or dash. */
  const block = (inner: EditValue, column: number, step = dash): { head: string; lines: string[] } => {
    const isCollection = inner instanceof Map ? inner.size > 0 : Array.isArray(inner) && inner.length > 0;
    if (!isCollection || choices.chance(15)) {
      if (
        typeof inner === "string" &&
        /^[!-~][ -~\n]*$/.test(inner) &&
        !inner.endsWith("\n") &&
        choices.chance(30)
      ) {
        return {
          head: "|-",
          lines: inner.split("\n").map((line) => (line === "" ? "" : " ".repeat(column + unit) + line)),
        };
      }
      return { head: flow(inner), lines: [] };
    }
    const lines: string[] = [];
    if (inner instanceof Map) {
      for (const [key, item] of inner as EditMap) {
        const own = block(item, column + unit);
        if (choices.chance(15)) lines.push(`${" ".repeat(column + unit)}# about ${choices.below(100)}`);
        lines.push(
          `${" ".repeat(column + unit)}${keyOf(key)}:${own.head === "" ? "" : ` ${own.head}`}${note()}`,
          ...own.lines,
        );
      }
    } else {
      for (const item of inner as readonly EditValue[]) {
        const own = block(item, column + step, unit);
        const first = own.lines[0];
        const rest = own.head === "" ? own.lines.slice(1) : own.lines;
        const isInline =
          own.head !== "" ||
          (first !== undefined && !first.trimStart().startsWith("#") && unit === 2 && step === 2);
        if (own.head === "" && !isInline) lines.push(`${" ".repeat(column + step)}-`, ...own.lines);
        else
          lines.push(
            `${" ".repeat(column + step)}- ${own.head === "" ? (first ?? "").trimStart() : own.head}${own.head === "" ? "" : note()}`,
            ...rest,
          );
      }
    }
    return { head: "", lines };
  };
  const { head, lines } = block(value, -unit);
  const body = head === "" ? lines.join(ending) : head;
  return (
    choices.pick(["", "\uFEFF"]) +
    choices.pick(["", `# top${ending}`, `---${ending}`]) +
    body +
    choices.pick(["", ending])
  );
}

test("yaml edit: another parser reads the merged value of any document", () => {
  const cases = anyMap.chain((document) =>
    fc.tuple(fc.constant(document), contentFor(document), fc.integer()),
  );
  fc.assert(
    fc.property(cases, ([document, content, seed]) => {
      const before = print(document, new Choices(seed));
      assert.deepEqual(independent(before), plain(document), before);
      const after = edit("yaml", before, content);
      assert.deepEqual(independent(after), plainMerge(plain(document), plain(content)));
    }),
    { numRuns: RUNS },
  );
});

test("yaml edit: lines without a managed key stay byte for byte [agent 14.1]", () => {
  const cases = fc.tuple(
    anyMap,
    fc.uniqueArray(fc.stringMatching(/^new[a-z]{1,4}$/), { minLength: 1, maxLength: 3 }),
    anyText,
    fc.integer(),
  );
  fc.assert(
    fc.property(cases, ([document, keys, value, seed]) => {
      const before = print(document, new Choices(seed));
      if (/^\uFEFF?(?:# top\r?\n|---\r?\n)?\{/.test(before)) return;
      const added = yaml.edit(before, new Map(keys.map((key) => [key, new Map([["in", value]])])));
      const lines = before.split(/(?<=\n)/);
      assertKeepsLines(added.text, lines.slice(0, -1));
      const removed = yaml.edit(added.text, new Map(), { remove: added.managed });
      if (document.size > 0 && before.endsWith("\n")) assert.equal(removed.text, before);
    }),
    { numRuns: 150 },
  );
});

test("yaml edit: YAML 1.2 and 1.1 parsers read any string unchanged, in any style [agent 14.11]", () => {
  const places = [
    "k: old\n",
    "k: 'old'\n",
    'k: "old" # c\n',
    "k: |\n  old\n",
    "k: >-\n  old\nz: 1\n",
    "k:\n",
    "{k: old}\n",
    "- 1\n",
    "k: |+\n  old\n\n\nz: 1\n",
  ];
  for (const existing of places) {
    for (const value of [
      ...NASTY,
      ...NASTY.map((text) => `x\n${text}\n`),
      "a\r\nb",
      "\0",
      "\u0085x\u0001",
      "\ttab",
      "x\n\n\ny",
      "x\n y\nz\n",
      "x\n\n",
    ]) {
      if (existing === "- 1\n") continue;
      const after = edit("yaml", existing, new Map([["k", value]]));
      for (const version of ["1.2", "1.1"] as const) {
        assert.equal((parse(after, { version }) as { k: unknown }).k, value, JSON.stringify(after));
      }
    }
  }
});

test("yaml edit: the style of a scalar stays if it can represent the value [agent 14.11]", () => {
  const before = "plain: a  # p\nsingle: 'a'\ndouble: \"a\"\nliteral: |\n    a\nfolded: >-  # f\n  a\n";
  const content = 'plain: b c\nsingle: it\'s\ndouble: b\nliteral: "b\\nc\\n"\nfolded: "b\\nc"\n';
  assert.equal(
    edit("yaml", before, content),
    "plain: b c  # p\nsingle: 'it''s'\ndouble: \"b\"\nliteral: |\n    b\n    c\nfolded: >-  # f\n  b\n\n  c\n",
  );
  assert.equal(edit("yaml", "a: x\nb: 'x'\n", 'a: "no"\nb: "x\\ty\\r"'), 'a: "no"\nb: "x\\ty\\r"\n');
});

test("yaml edit: a kubeconfig gets contexts by name, keeps indentation and comments", () => {
  const before = corpus("kubeconfig.yaml");
  const content = [
    "clusters: [{name: dev, cluster: {server: 'https://new.example.org:6443'}}]",
    "users: [{name: alice, user: {token: new-token}}, {name: ci, user: {token: ci-token}}]",
    "current-context: dev",
  ].join("\n");
  const after = edit("yaml", before, content, {
    lists: { clusters: "name", contexts: "name", users: "name" },
  });
  assert.equal(
    after,
    before
      .replace("https://old.example.org:6443", "https://new.example.org:6443")
      .replace("token: old-token # rotated by hand", "token: new-token # rotated by hand")
      .replace("current-context: prod", "current-context: dev")
      .replace("      - --region=eu\n", "      - --region=eu\n- name: ci\n  user:\n    token: ci-token\n"),
  );
});

test("yaml edit: a compose file keeps anchors, quotes and its four columns", () => {
  const before = corpus("compose.yaml");
  const after = edit(
    "yaml",
    before,
    'services: {web: {environment: {API_TOKEN: "yes", NEW: "1"}, image: "web:2"}}',
  );
  assert.equal(
    after,
    before
      .replace('API_TOKEN: "old"', 'API_TOKEN: "yes"\n            NEW: "1"')
      .replace("image: web:1", "image: web:2"),
  );
});

test("yaml edit: refuses a key in an alias, a shared anchor or a merge key [agent 14.13]", () => {
  const before = "base: &b\n  x: 1\n  s: &s v\nuse: *b\nthird: *s\nmap:\n  <<: *b\n  own: 1\nlone: &l 5\n";
  assertRefuses("unsupported", () => edit("yaml", before, "use: {x: 2}"));
  assertRefuses("unsupported", () => edit("yaml", before, "base: {x: 2}"));
  assertRefuses("unsupported", () => edit("yaml", before, "base: {y: 2}"));
  assertRefuses("unsupported", () => edit("yaml", before, "base: {s: w}"));
  assertRefuses("unsupported", () => edit("yaml", before, "map: {x: 2}"));
  assertRefuses("unsupported", () => edit("yaml", before, "{}", { remove: [["base", "x"]] }));
  assert.equal(edit("yaml", before, "map: {own: 2, more: 3}"), before.replace("own: 1", "own: 2\n  more: 3"));
  assert.equal(edit("yaml", before, "lone: 6"), before.replace("&l 5", "&l 6"));
});

test("yaml edit: reads nested merge keys and aliases in linear time", () => {
  const levels = Array.from({ length: 40 }, (_, index) => {
    const sources = Array.from({ length: 10 }, () => `*l${index}`).join(", ");
    return `l${index + 1}: &l${index + 1}\n  <<: [${sources}]\n`;
  });
  const before = `l0: &l0 {deep: 1}\n${levels.join("")}own: {<<: *l40}\n`;
  assertRefuses("unsupported", () => edit("yaml", before, "own: {deep: 2}"));
  assert.equal(
    edit("yaml", before, "own: {k: v}"),
    before.replace("own: {<<: *l40}", "own: {<<: *l40, k: v}"),
  );
});

test("yaml edit: nulls, empty collections and scalars become mappings, and back", () => {
  assert.equal(
    edit(
      "yaml",
      "a:\nb: # note\nc: ~ # c\nd: {}\ne: [] # e\nf: x # f\n",
      "a: {x: 1}\nb: {x: 1}\nc: {x: 1}\nd: {x: 1}\ne: [1]\nf: {x: 1}",
    ),
    "a:\n  x: 1\nb: # note\n  x: 1\nc: # c\n  x: 1\nd:\n  x: 1\ne: # e\n  - 1\nf: # f\n  x: 1\n",
  );
  assert.equal(
    edit("yaml", "a: # note\n  x: 1\n  # in\n  y: 2\nb: 1\n", "a: z"),
    "a: z # note\n  # in\nb: 1\n",
  );
});

test("yaml edit: empty, comment-only and header-only documents get content at the end", () => {
  assert.equal(edit("yaml", undefined, "a: {b: [1, x]}\nc: {}\n"), "a:\n  b:\n    - 1\n    - x\nc: {}\n");
  assert.equal(edit("yaml", "# mine\r\n", "a: 1"), "# mine\r\na: 1\r\n");
  assert.equal(edit("yaml", "%YAML 1.2\n---\n# c", "a: 1"), "%YAML 1.2\n---\n# c\na: 1\n");
  assert.equal(edit("yaml", "a: 1\n...\n", "b: 2"), "a: 1\nb: 2\n...\n");
  assert.equal(edit("yaml", "a: 1", "b: 2"), "a: 1\nb: 2");
});

test("yaml edit: flow collections stay flow, and strings in them are safe there", () => {
  assert.equal(
    edit(
      "yaml",
      '{a: 1, "b": {"c": 2}, d: [1, 2,], e: {}}\n',
      "a: 'x, y'\nb: {n: z}\nd: ['p]']\ne: {q: 1}\nf: {g: h}",
    ),
    '{a: "x, y", "b": {"c": 2, "n": "z"}, d: ["p]"], e: {q: 1}, f: {g: h}}\n',
  );
  assert.equal(
    edit("yaml", "m: {\n  a: 1, # one\n  b: 2\n}\n", "m: {c: 3}", { remove: [["m", "a"]] }),
    "m: {\n  # one\n  b: 2,\n  c: 3\n}\n",
  );
});

test("yaml remove: keeps comments, removes empty parents and empty sequence entries", () => {
  assert.equal(
    edit("yaml", "a: 1\nb:\n  c: 1 # note\n  # inner\nd: 2\n", "{}", { remove: [["b", "c"]] }),
    "a: 1\n# note\n  # inner\nd: 2\n",
  );
  const list = "l:\n  - name: a\n    v: 1\n    w: 2\n  - name: b\n";
  assert.equal(
    edit("yaml", list, "{}", {
      remove: [
        ["l", "[name=a]", "name"],
        ["l", "[name=a]", "v"],
      ],
    }),
    "l:\n  - name: a\n    w: 2\n  - name: b\n",
  );
  assert.equal(
    edit("yaml", list, "{}", { remove: [["l", "[name=b]", "name"]] }),
    "l:\n  - name: a\n    v: 1\n    w: 2\n",
  );
  assert.equal(
    edit("yaml", "l:\n- v: 1\n  name: a\nx: y", "{}", { remove: [["l", "[name=a]", "v"], ["x"]] }),
    "l:\n- name: a",
  );
});

test("yaml merge replace and deleteNulls [agent 14.15]", () => {
  assert.equal(
    edit("yaml", "# top\na: 1 # keep\nb: 2\nc: {d: 1, e: 2}\n", "a: 1\nc: {e: 2}\nf: g", {
      merge: "replace",
    }),
    "# top\na: 1 # keep\nc: {e: 2}\nf: g\n",
  );
  assert.equal(edit("yaml", "a: {b: 1}\nc: 1\n", "a: null\nc:\nd: null", { deleteNulls: true }), "");
  assert.equal(edit("yaml", "a: 1\n", "a: null"), "a: null\n");
});

test("yaml parse: malformed, ambiguous and shared input is refused and not quoted [agent 14.10]", () => {
  const secret = "hunter2";
  for (const text of [
    `a: [${secret}`,
    `a: "${secret}`,
    `a: b: ${secret}`,
    `a:\n\t- ${secret}`,
    `? ${secret}\n: : :\n-`,
    `a: *${secret}`,
  ]) {
    assertRefuses("unparsable_existing", () => yaml.edit(text, new Map([["b", "1"]])), [secret]);
    assertRefuses("unparsable_content", () => yaml.parse(text), [secret]);
  }
  for (const text of ["a: 1\n---\nb: 2\n", "a: 1\na: 2\n", "- 1\n", "text\n"]) {
    assertRefuses("unsupported", () => yaml.edit(text, new Map([["b", "1"]])));
    assertRefuses("unparsable_content", () => yaml.parse(text));
  }
  for (const text of ["a: &x 1\nb: *x\n", "a: !T 1\n", "{[a]: 1}\n"])
    assertRefuses("unparsable_content", () => yaml.parse(text));
  assertRefuses("unsupported", () => yaml.edit("a: !T 1\n", new Map([["a", "2"]])));
  assertRefuses("unparsable_existing", () => yaml.edit(`a: ${"[".repeat(50_000)}`, new Map()));
});

test("yaml parse: numbers keep their text, and YAML 1.1 types are not recognised", () => {
  assert.deepEqual(
    yaml.parse("a: 012\nb: 1e400\nc: 9223372036854775808\nd: no\ne: 0x1F\nf: ~\ng: 1.10\nh: 2024-01-02\n"),
    new Map<string, EditValue>([
      ["a", { number: "012" }],
      ["b", { number: "1e400" }],
      ["c", { number: "9223372036854775808" }],
      ["d", "no"],
      ["e", { number: "0x1F" }],
      ["f", null],
      ["g", { number: "1.10" }],
      ["h", "2024-01-02"],
    ]),
  );
});

test("yaml mask: keeps the lines, and no value and no comment", () => {
  assert.equal(
    yaml.mask(
      "d: &q !!str 5\na: hunter2 # was hunter1\nb: |  # hunter0\n  k1\n\n  k2\nc: [\"a\", 1, {z: *q}]\ne: 'two\n  lines'\n",
    ),
    "d: &q !!str ••••\na: •••• ••••\nb: |  # hunter0\n  ••••\n\n  ••••\nc: [••••, ••••, {z: *q}]\ne: ••••\n  ••••\n".replace(
      "# hunter0",
      "••••",
    ),
  );
});

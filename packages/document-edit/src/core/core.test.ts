import assert from "node:assert/strict";
import { test } from "node:test";
import { FORMAT_NAMES, documentFormat, sameShape, type EditMap, type EditValue } from "../index.ts";
import { assertKeepsLines, assertRefuses } from "../../test/editing.test-kit.ts";
import { applySplices, endingNear, wholeLines } from "./splice.ts";
import { maskLines } from "./mask.ts";
import { planCuts, withoutPaths } from "./merge.ts";

test("applySplices: sorts, keeps the order at one offset, and refuses overlaps", () => {
  const text = "abcdef";
  assert.equal(
    applySplices(text, [
      { start: 4, end: 5, text: "X" },
      { start: 0, end: 0, text: "1" },
      { start: 0, end: 0, text: "2" },
    ]),
    "12abcdXf",
  );
  assert.throws(
    () =>
      applySplices(text, [
        { start: 1, end: 3, text: "x" },
        { start: 2, end: 4, text: "y" },
      ]),
    RangeError,
  );
  assert.equal(
    applySplices("a\nb\nc", [
      { start: 1, end: 4, text: "" },
      { start: 3, end: 5, text: "" },
    ]),
    "a",
    "two cuts share a line break",
  );
  for (const first of ["", "x"]) {
    assert.throws(
      () =>
        applySplices(text, [
          { start: 1, end: 3, text: first },
          { start: 2, end: 4, text: "" },
        ]),
      RangeError,
    );
  }
});

test("wholeLines: includes the break before a last line without a line break", () => {
  assert.deepEqual(wholeLines("a\n b \nc", 3, 4), { start: 2, end: 6 });
  assert.deepEqual(wholeLines("a\r\nb", 3, 4), { start: 1, end: 4 });
  assert.deepEqual(wholeLines("a # c\nb", 0, 1), { start: 0, end: 1 });
});

test("endingNear: uses the line's own ending in a text with both", () => {
  assert.equal(endingNear("a\r\nb\nc", 0), "\r\n");
  assert.equal(endingNear("a\r\nb\nc", 3), "\n");
  assert.equal(endingNear("a", 0), "\n");
});

test("maskLines: every line gets one mask of the same length", () => {
  assert.equal(maskLines("secret words here"), "••••");
  assert.equal(maskLines("a\r\n  b c\n\n\td"), "••••\r\n  ••••\n\n\t••••");
});

test("planCuts: cuts the highest mapping that becomes empty, and keeps other keys", () => {
  const inner = (entries: [string, EditValue][]): EditMap => new Map(entries);
  const map = inner([
    [
      "a",
      inner([
        ["b", inner([["c", "1"]])],
        ["d", "2"],
      ]),
    ],
    ["e", inner([["f", "3"]])],
  ]);
  assert.deepEqual(planCuts(map, [["a", "b", "c"]], []), [["a", "b"]]);
  assert.deepEqual(
    planCuts(
      map,
      [
        ["a", "b", "c"],
        ["a", "d"],
      ],
      [],
    ),
    [["a"]],
  );
  assert.deepEqual(planCuts(map, [["a"], ["x"], ["e", "f", "g"]], []), []);
  assert.deepEqual(planCuts(map, [], [["a"]]), [["a"]]);
  assert.deepEqual([...withoutPaths(map, [["a"]]).keys()], ["e"]);
});

test("planCuts: keeps the key field of an entry while other fields remain", () => {
  const entry = new Map<string, EditValue>([
    ["name", "x"],
    [
      "in",
      new Map([
        ["name", "y"],
        ["z", "1"],
      ]),
    ],
    ["theirs", "t"],
  ]);
  const map = new Map<string, EditValue>([["l", [entry]]]);
  const leaves = [
    ["l", "[name=x]", "name"],
    ["l", "[name=x]", "in", "name"],
  ];
  assert.deepEqual(planCuts(map, leaves, []), [["l", "[name=x]", "in", "name"]]);
});

test("sameShape: ignores scalars, compares keys, their order and sequence lengths", () => {
  const yaml = documentFormat("yaml");
  const shape = (a: string, b: string): boolean => sameShape(yaml.parse(a), yaml.parse(b));
  assert.equal(shape("a: 1\nb: [x, y]\n", "a: placeholder\nb: [p, q]\n"), true);
  assert.equal(shape("a: 1\n", "a: 1\nb: 2\n"), false);
  assert.equal(shape("a: 1\n", "a: {b: 2}\n"), false);
  assert.equal(shape("a: [x]\n", "a: [x, y]\n"), false);
  assert.equal(shape("a: 1\nb: 2\n", "b: 2\na: 1\n"), false);
});

/** A value that each format can represent, and its place. */
const SAMPLES: Readonly<Record<string, { content: string; leaf: string[] }>> = {
  yaml: { content: "a: {k: v}\n", leaf: ["a", "k"] },
  json: { content: '{"a": {"k": "v"}}', leaf: ["a", "k"] },
  text: { content: "v", leaf: [] },
  netrc: { content: "machine a login k password v\n", leaf: ["a", "k", "password"] },
  ini: { content: "[a]\nk = v\n", leaf: ["a", "k"] },
  toml: { content: '[a]\nk = "v"\n', leaf: ["a", "k"] },
  ssh_config: { content: "Host a\n  User v\n", leaf: ["Host a", "User"] },
  dotenv: { content: "k=v\n", leaf: ["k"] },
  properties: { content: "k=v\n", leaf: ["k"] },
};

for (const name of FORMAT_NAMES) {
  const { content, leaf } = SAMPLES[name] ?? { content: "", leaf: [] };
  const format = documentFormat(name);

  test(`${name}: a BOM stays first and is not part of the content [agent 14.9]`, () => {
    const bom = `\uFEFF${content}`;
    if (name === "text") return;
    assert.deepEqual(format.parse(bom), format.parse(content));
    assert.equal(format.edit(bom, format.parse(content)).text, bom);
    assert.equal(format.edit("\uFEFF", format.parse(content)).text.startsWith("\uFEFF"), true);
  });

  test(`${name}: get gives values that edit has set, and undefined for missing leaves`, () => {
    const { text, managed } = format.edit(undefined, format.parse(content));
    assert.deepEqual(managed, [leaf]);
    assert.deepEqual(format.get(text, [leaf, ["none", "of", "these"]]), ["v", undefined]);
  });

  test(`${name}: mask keeps the number of lines, and no value`, () => {
    const { text } = format.edit(undefined, format.parse(content.replace("v", "hunter2")));
    const masked = format.mask(text);
    assert.equal(masked.split("\n").length, text.split("\n").length);
    assert.ok(!masked.includes("hunter2") && masked.includes("••••"));
  });

  test(`${name}: an error has line and column, and does not quote the document`, () => {
    if (name === "text") return;
    const bad = name === "properties" ? "a=b\nk=\\uhunter2" : `${content}\n\u0001hunter2{"`;
    assertRefuses("unparsable_content", () => format.parse(bad), ["hunter2"]);
    assertRefuses("unparsable_existing", () => format.get(bad, [leaf]), ["hunter2"]);
  });

  test(`${name}: line endings stay, and a new line gets the ending nearby [agent 14.9]`, () => {
    if (name === "text") return;
    const lines: Readonly<Record<string, string>> = {
      yaml: "b: 1\r\n# c\nz: 2\r\n",
      json: '{\r\n  "b": 1,\n  // c\n  "z": 2\r\n}\n',
      netrc: "machine b login x password y\r\n# c\nmachine z login x password y\r\n",
      ini: "[b]\r\nx=1\n; c\nz=2\r\n",
      toml: "[b]\r\nx=1\n# c\nz=2\r\n",
      ssh_config: "Host b\r\n  Port 1\n# c\n  User x\r\n",
      dotenv: "b=1\r\n# c\nz=2\r\n",
      properties: "b=1\r\n# c\nz=2\r\n",
    };
    const before = lines[name] ?? "";
    const { text, managed } = format.edit(before, format.parse(content));
    const kept = before.split(/(?<=\n)/).filter((line) => !line.includes('"z"'));
    assertKeepsLines(text, kept);
    assert.ok(text.split("\n").length > before.split("\n").length);
    assert.ok(text.endsWith("\n") && /\r\n(?:\}\n)?$/.test(text), JSON.stringify(text));
    assert.equal(format.edit(text, new Map(), { remove: managed }).text, before);
  });
}

test("edit: half of a surrogate pair is refused, or escaped if the format can", () => {
  for (const name of FORMAT_NAMES) {
    const format = documentFormat(name);
    const inner: EditMap = new Map([["password", "a\ud800"]]);
    const content: EditMap =
      name === "text"
        ? new Map([["", "a\ud800"]])
        : name === "netrc"
          ? new Map([["h", new Map([["l", inner]])]])
          : name === "ssh_config"
            ? new Map([["Host h", inner]])
            : inner;
    if (["yaml", "json", "properties"].includes(name)) {
      const { text } = format.edit(undefined, content);
      assert.ok(text.isWellFormed());
      assert.deepEqual(format.get(text, [["password"]]), ["a\ud800"]);
    } else {
      assertRefuses("unsafe_value", () => format.edit(undefined, content));
    }
  }
});

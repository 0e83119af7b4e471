import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { documentFormat, type EditMap, type EditValue } from "../index.ts";
import {
  Choices,
  anyMap,
  contentFor,
  corpus,
  edit,
  plain,
  plainMerge,
  assertRefuses,
} from "../../test/editing.test-kit.ts";

const json = documentFormat("json");

/** Result of JSON.parse with numbers as source text, after a separate scanner has removed comments and trailing commas. */
function independent(text: string): unknown {
  let strict = "";
  for (let at = text.startsWith("\uFEFF") ? 1 : 0; at < text.length; at++) {
    const rest = text.slice(at, at + 2);
    if (text[at] === '"') {
      const end = /"(?:[^"\\]|\\.)*"/y;
      end.lastIndex = at;
      strict += end.exec(text)?.[0] ?? "";
      at = end.lastIndex - 1;
    } else if (rest === "//") {
      at = text.indexOf("\n", at) === -1 ? text.length : text.indexOf("\n", at) - 1;
    } else if (rest === "/*") {
      at = text.indexOf("*/", at) + 1;
    } else {
      strict += text[at];
    }
  }
  strict = strict.replace(/"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])/g, (match) => (match === "," ? "" : match));
  return JSON.parse(strict, (_key, value: unknown, context?: { source?: string }) =>
    typeof value === "number" ? `#${context?.source}` : value,
  );
}

/** Prints in a random layout: comments, trailing commas, indentation, line endings. */
function print(value: EditMap, choices: Choices): string {
  const ending = choices.pick(["\n", "\r\n"]);
  const unit = choices.pick(["  ", "\t", "    "]);
  const colon = choices.pick([": ", ":", " : "]);
  const trailing = choices.chance(30);
  const commented = choices.chance(60);
  const note = (own: string): string =>
    commented && choices.chance(30) ? choices.pick([own, "/* {note} */ "]) : "";
  const visit = (inner: EditValue, indent: string): string => {
    if (!(inner instanceof Map) && !Array.isArray(inner)) {
      return typeof inner === "object" && inner !== null
        ? (inner as { number: string }).number
        : JSON.stringify(inner);
    }
    const entries =
      inner instanceof Map ? [...inner] : (inner as EditValue[]).map((item) => ["", item] as const);
    const [open, close] = inner instanceof Map ? ["{", "}"] : ["[", "]"];
    if (entries.length === 0) return choices.pick([open + close, `${open} ${close}`]);
    const flat = choices.chance(25);
    const deeper = flat ? "" : ending + indent + unit;
    const printed = entries.map(([key, item], index) => {
      const name = inner instanceof Map ? JSON.stringify(key) + colon : "";
      const own = flat ? "" : note(`// it's "a" note${deeper}`);
      const comma = index < entries.length - 1 || (trailing && !flat) ? "," : "";
      return `${deeper}${own}${name}${visit(item as EditValue, flat ? "" : indent + unit)}${comma}${flat ? " " : note("// end")}`;
    });
    return `${open}${printed.join("")}${flat ? "" : ending + indent}${close}`;
  };
  const flatSafe = visit(value, "");
  return choices.pick(["", "\uFEFF"]) + flatSafe + choices.pick(["", ending]);
}

test("json edit: another parser reads the merged value of any document", () => {
  const cases = anyMap.chain((document) =>
    fc.tuple(fc.constant(document), contentFor(document), fc.integer()),
  );
  fc.assert(
    fc.property(cases, ([document, content, seed]) => {
      const before = print(document, new Choices(seed));
      assert.deepEqual(independent(before), plain(document));
      const after = edit("json", before, content);
      assert.deepEqual(independent(after), plainMerge(plain(document), plain(content)));
      assert.equal(after.startsWith("\uFEFF"), before.startsWith("\uFEFF"));
    }),
    { numRuns: 200 },
  );
});

test("json edit: setting scalars changes only their bytes [agent 14.2]", () => {
  const flat = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,5}$/), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(flat, fc.integer(), (keys, seed) => {
      const choices = new Choices(seed);
      const parts = keys.map(
        (key) =>
          `${choices.pick(["\n  ", "\r\n\t", " "])}/* ${key} */ "${key}" :${choices.pick(["", " ", "\t"])}`,
      );
      const managed = new Set(keys.filter(() => choices.chance(50)));
      const text = (value: (key: string) => string): string =>
        `{${keys.map((key, index) => parts[index] + value(key)).join(" , ")} } // end`;
      const before = text((key) => `"old ${key}"`);
      const content = new Map([...managed].map((key) => [key, `new ${key}`]));
      assert.equal(
        edit("json", before, content),
        text((key) => `"${managed.has(key) ? "new" : "old"} ${key}"`),
      );
    }),
    { numRuns: 100 },
  );
});

test("json edit: adding keys and removing them again gives the old text", () => {
  const cases = fc.tuple(
    anyMap,
    fc.uniqueArray(fc.stringMatching(/^new[a-z]{1,4}$/), { minLength: 1, maxLength: 3 }),
    fc.integer(),
  );
  fc.assert(
    fc.property(cases, ([document, keys, seed]) => {
      const before = print(new Map([["first", "x"], ...document]), new Choices(seed));
      const content = new Map(keys.map((key) => [key, new Map([["in", "y"]])]));
      const added = json.edit(before, content);
      const removed = json.edit(added.text, new Map(), { remove: added.managed });
      assert.equal(removed.text, before);
    }),
    { numRuns: 100 },
  );
});

test("json edit: a docker config.json keeps tabs, order and big numbers", () => {
  const before = corpus("docker-config.json");
  const after = edit(
    "json",
    before,
    '{"auths":{"registry.example.org":{"auth":"bmV3OnRva2Vu"},"new.example.org":{"auth":"YTpi"}}}',
  );
  assert.equal(
    after,
    before
      .replace("b2xkOnRva2Vu", "bmV3OnRva2Vu")
      .replace(
        '\t\t"ghcr.io": {}\n',
        '\t\t"ghcr.io": {},\n\t\t"new.example.org": {\n\t\t\t"auth": "YTpi"\n\t\t}\n',
      ),
  );
});

test("json remove: keeps comments, removes empty parents and the comma before", () => {
  const before = '{\n  "a": 1,\n  // about b\n  "b": { // inner\n    "x": 1\n  },\n  "c": 3 // three\n}\n';
  assert.equal(
    edit("json", before, "{}", { remove: [["b", "x"], ["c"]] }),
    '{\n  "a": 1\n  // about b\n  // inner\n  // three\n}\n',
  );
});

test("json remove: a leaf that has become a mapping stays", () => {
  assert.equal(edit("json", '{"a": {"theirs": 1}}', "{}", { remove: [["a"]] }), '{"a": {"theirs": 1}}');
});

test("json deleteNulls: a null deletes the key with its content, and writes no null [agent 14.15]", () => {
  assert.equal(
    edit("json", '{"a": {"b": 1}, "c": 2}', '{"a": null, "n": {"m": null}}', { deleteNulls: true }),
    '{"c": 2}',
  );
  assert.equal(edit("json", '{"a": 1}', '{"a": null}'), '{"a": null}');
});

test("json merge replace: removes other keys, and changes no byte of equal content", () => {
  const before = '{ "a" : 1, // keep\n  "b": [1, 2], "c": {"d": 1, "e": 2} }';
  assert.equal(edit("json", before, '{"a":1,"b":[1,2],"c":{"d":1,"e":2}}', { merge: "replace" }), before);
  assert.equal(
    edit("json", before, '{"a":1,"c":{"e":2}}', { merge: "replace" }),
    '{ "a" : 1, // keep\n  "c": {"e": 2} }',
  );
});

test("json lists: entries are merged by their field, other entries stay", () => {
  const before = '{"l": [{"name": "x", "v": 1}, {"name": "y", "theirs": true}]}';
  const after = edit("json", before, '{"l":[{"name":"y","v":2},{"name":"z"}]}', { lists: { l: "name" } });
  assert.equal(after, '{"l": [{"name": "x", "v": 1}, {"name": "y", "theirs": true, "v": 2}, {"name": "z"}]}');
  const managed = json.edit(before, json.parse('{"l":[{"name":"y","v":2}]}'), {
    lists: { l: "name" },
  }).managed;
  assert.deepEqual(managed, [
    ["l", "[name=y]", "name"],
    ["l", "[name=y]", "v"],
  ]);
  assert.equal(
    edit("json", before, "{}", {
      remove: [
        ["l", "[name=x]", "name"],
        ["l", "[name=x]", "v"],
        ["l", "[name=y]", "name"],
      ],
    }),
    '{"l": [{"name": "y", "theirs": true}]}',
  );
  assertRefuses("unsupported", () =>
    edit("json", '{"l":[{"name":"x"},{"name":"x"}]}', '{"l":[{"name":"x"}]}', { lists: { l: "name" } }),
  );
  assertRefuses("unsupported", () => edit("json", '{"l":[]}', '{"l":[{"v":"x"}]}', { lists: { l: "name" } }));
});

test("json edit: an empty, missing or comment-only file gets a complete document", () => {
  assert.equal(edit("json", undefined, '{"a":{"b":1}}'), '{\n  "a": {\n    "b": 1\n  }\n}\n');
  assert.equal(edit("json", "// mine\r\n", '{"a":1}'), '// mine\r\n{\r\n  "a": 1\r\n}\r\n');
  assert.equal(edit("json", "{}", '{"a":1}'), '{\n  "a": 1\n}');
});

test("json parse: malformed content and files are refused and not quoted [agent 14.10]", () => {
  const secret = "hunter2";
  for (const text of [
    `{"a": ${secret}}`,
    `{"a": "${secret}`,
    `{"a" "${secret}"}`,
    `{"a":1} ${secret}`,
    `{'a': '${secret}'}`,
    "{",
    `{"a":01}`,
    '{"a":"\t"}',
  ]) {
    assertRefuses("unparsable_existing", () => json.edit(text, new Map([["b", "1"]])), [secret]);
    assertRefuses("unparsable_content", () => json.parse(text), [secret]);
  }
  assertRefuses("unparsable_existing", () => json.edit("[".repeat(100_000), new Map()));
  assertRefuses("unsupported", () => json.edit('{"a":1,"a":2}', new Map()));
  assertRefuses("unparsable_content", () => json.parse('{"a":1,"a":2}'));
  assertRefuses("unsupported", () => json.edit("[1]", new Map()));
  assertRefuses("unparsable_content", () => json.parse("[1]"));
  assertRefuses("unparsable_content", () => json.parse(""));
});

test("json parse: an error names line and column", () => {
  assert.throws(() => json.parse('{\n  "a": x\n}'), { line: 2, column: 8 });
});

test("json get: gives the value of a leaf, numbers by source text", () => {
  const text = '{"a": {"b": 9223372036854775808}, "l": [{"name": "x", "v": 1.10}]}';
  assert.deepEqual(
    json.get(text, [
      ["a", "b"],
      ["l", "[name=x]", "v"],
      ["a", "c"],
    ]),
    [{ number: "9223372036854775808" }, { number: "1.10" }, undefined],
  );
});

test("json mask: keeps the lines, and no value and no comment", () => {
  const masked = json.mask(
    '{\n  "a": "hunter2", // was hunter1\n  "b": [12,\n    true],\n  /* old:\n     hunter0 */ "c": null\n}\n',
  );
  assert.equal(masked, '{\n  "a": ••••, ••••\n  "b": [••••,\n    ••••],\n  ••••\n     •••• "c": ••••\n}\n');
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { documentFormat, type FormatName } from "../index.ts";

/** For each format, an entry to add, and a line of a long document. */
const FORMATS: Readonly<
  Partial<Record<FormatName, { added: string; readonly line: (index: number) => string }>>
> = {
  yaml: { added: "a: {k: v}\n", line: (index) => `key${index}:\n  inner: value ${index} # c\n` },
  json: {
    added: '{"a": {"k": "v"}}',
    line: (index) => `${index === 0 ? "{" : ","}\n  "key${index}": {"inner": "value"}`,
  },
  netrc: {
    added: "machine a login k password v\n",
    line: (index) => `machine host${index} login me password secret # c\n`,
  },
  ini: { added: "[a]\nk = v\n", line: (index) => `[s${index}]\nkey = value ; c\n` },
  toml: { added: '[a]\nk = "v"\n', line: (index) => `[s${index}]\nkey = "value" # c\n` },
  ssh_config: { added: "Host a\n  User v\n", line: (index) => `Host h${index}\n  User me # c\n` },
  dotenv: { added: "k=v\n", line: (index) => `KEY${index}='value' # c\n` },
  properties: { added: "k=v\n", line: (index) => `key${index} = value\\u0020more\n` },
};

for (const [name, { added, line }] of Object.entries(FORMATS)) {
  test(`${name}: undoing an edit of a megabyte gives the same bytes`, () => {
    const format = documentFormat(name as FormatName);
    const count = Math.ceil(1_000_000 / line(1000).length);
    const lines = Array.from({ length: count }, (_, index) => line(index));
    const document = lines.join("") + (name === "json" ? "\n}\n" : "");
    const { text, managed } = format.edit(document, format.parse(added));
    assert.notEqual(text, document);
    assert.equal(format.edit(text, new Map(), { remove: managed }).text, document);
  });
}

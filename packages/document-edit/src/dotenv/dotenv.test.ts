import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { documentFormat } from "../index.ts";
import { assertAddRemove, assertEdits, type EntriesCase } from "../../test/entries.test-kit.ts";
import { corpus, edit, assertRefuses } from "../../test/editing.test-kit.ts";

const dotenv = documentFormat("dotenv");

/** Values of the file's keys in the POSIX shell. */
function shell(text: string): Map<string, string> {
  const keys = [...text.matchAll(/^[ \t]*(?:export[ \t]+)?([A-Z][A-Z0-9_]*)=/gm)].map(
    (match) => match[1] ?? "",
  );
  const script = `${text.replaceAll("\r\n", "\n")}\n${keys.map((key) => `printf '%s\\0' "$${key}"`).join("\n")}\n`;
  const { stdout, stderr } = spawnSync("/bin/sh", ["-s"], { input: script, encoding: "utf8", env: {} });
  assert.equal(stderr, "");
  return new Map(
    stdout
      .split("\0")
      .slice(0, -1)
      .map((value, index) => [keys[index] ?? "", value]),
  );
}

const value = fc.oneof(
  fc.stringMatching(/^[ -~]{0,12}$/),
  fc.constantFrom(
    "$(id)",
    "`id`",
    "${HOME}",
    "it's",
    `"q"`,
    `both ' and "`,
    "a#b",
    "a #b",
    "\\n",
    "\\",
    "é 日本",
    " x ",
    "!x",
    "a\tb",
    "~",
  ),
);

const CASE: EntriesCase = {
  format: "dotenv",
  sections: fc.constant("unused"),
  hasTop: true,
  key: fc.stringMatching(/^K_[A-Z0-9_]{1,5}$/),
  value,
  header: () => "# no header",
  comments: ["# it's a comment", "  # K_A=1", ""],
  write(key, text, choices) {
    const prefix = choices.pick(["", "", "export "]);
    const note = choices.pick(["", " # note: it's"]);
    if (/^[A-Za-z0-9]*$/.test(text) && choices.chance(50)) return `${prefix}${key}=${text}${note}`;
    if (!text.includes("'") && choices.chance(50)) return `${prefix}${key}='${text}'${note}`;
    return `${prefix}${key}="${text.replaceAll(/["$`\\]/g, "\\$&")}"${note}`;
  },
  read: shell,
  runs: 60,
};
// dotenv has no sections, so the property test uses none.
const TOP_ONLY: EntriesCase = { ...CASE, sections: fc.constant("") };

test("dotenv edit: the shell reads the merged values of any file, other lines stay [agent 14.7]", () => {
  assertEdits(TOP_ONLY);
});

test("dotenv edit: adding keys and removing them again gives the old text", () => {
  assertAddRemove(TOP_ONLY);
});

test("dotenv edit: a real file keeps export, quotes, comments and order", () => {
  const before = corpus("app.env");
  const after = edit(
    "dotenv",
    before,
    "API_TOKEN='new#token'\nDB_PASSWORD=\"it's\"\nPLAIN=simple\nADDED='x y'",
  );
  assert.equal(
    after,
    before
      .replace("export API_TOKEN=old-token # rotated", "export API_TOKEN='new#token' # rotated")
      .replace("DB_PASSWORD='old'", 'DB_PASSWORD="it\'s"')
      .replace("PLAIN=old", "PLAIN=simple")
      .replace("-----END KEY-----'\n", "-----END KEY-----'\nexport ADDED='x y'\n"),
  );
});

test("dotenv edit: uses single quotes unless the value has one; nothing is expanded [agent 14.21]", () => {
  assert.equal(
    edit(
      "dotenv",
      undefined,
      new Map([
        ["A", "$(id)"],
        ["B", "it's $HOME"],
        ["C", ""],
      ]),
    ),
    "A='$(id)'\nB=\"it's \\$HOME\"\nC=''\n",
  );
});

test("dotenv remove: comments stay, and no final line break is added", () => {
  assert.equal(edit("dotenv", "A=1\nB=2 # why\nC=3", "", { remove: [["B"], ["C"]] }), "A=1\n# why");
  assert.equal(edit("dotenv", "A=1\nB=2", "", { remove: [["B"]] }), "A=1");
});

test("dotenv edit: a value of several lines is quoted, also with CRLF and indentation", () => {
  const pem = "-----BEGIN-----\nA=1\n-----END-----\n";
  const after = edit(
    "dotenv",
    "B=2\r\n  A=1 # note\r\n",
    new Map([
      ["A", pem],
      ["C", pem],
    ]),
  );
  assert.equal(after, `B=2\r\n  A='${pem}' # note\r\n  C='${pem}'\r\n`.replace("  C", "C"));
});

test("dotenv edit: refuses carriage returns, NUL, invalid names and duplicate keys", () => {
  for (const text of ["hunter2\r\n", "a\rhunter2", "\0hunter2"]) {
    assertRefuses("unsafe_value", () => edit("dotenv", "", new Map([["A", text]])), ["hunter2"]);
  }
  assertRefuses("unsafe_value", () => edit("dotenv", "", new Map([["A B", "x"]])));
  assertRefuses("unsafe_value", () => edit("dotenv", "", new Map([["A=x\nB", "x"]])));
  assertRefuses("unsupported", () => edit("dotenv", "", new Map([["A", new Map([["b", "x"]])]])));
  assertRefuses("unsupported", () => edit("dotenv", "A=1\nA=2\n", "A=3"));
  assert.equal(edit("dotenv", "A=1\nA=2\n", "B=3"), "A=1\nA=2\nB=3\n");
});

test("dotenv parse: malformed input is refused and not quoted", () => {
  for (const text of [
    "hunter2",
    "A='hunter2",
    'A="hunter2',
    "A='x' hunter2",
    "=hunter2",
    "A",
    "A: hunter2",
  ]) {
    assertRefuses("unparsable_content", () => dotenv.parse(text), ["hunter2"]);
  }
  assertRefuses("unparsable_content", () => dotenv.parse("A=1\nA=2"));
  assertRefuses("unparsable_existing", () => edit("dotenv", "if hunter2", "A=1"), ["hunter2"]);
});

test("dotenv mask: values and comments are masked, lines and export stay", () => {
  assert.equal(
    dotenv.mask("# hunter1\nexport A=hunter2 # old\nB='x\ny'\n"),
    "••••\nexport A=•••• ••••\nB=••••\n••••\n",
  );
});

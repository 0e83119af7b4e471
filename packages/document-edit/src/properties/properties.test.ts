import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { documentFormat } from "../index.ts";
import { assertAddRemove, assertEdits, type EntriesCase } from "../../test/entries.test-kit.ts";
import { anyText, corpus, edit, assertRefuses } from "../../test/editing.test-kit.ts";

const properties = documentFormat("properties");

/** A second implementation of java.util.Properties.load: first logical lines, then single characters. */
function independent(text: string): Map<string, string> {
  const found = new Map<string, string>();
  const lines = text.split(/\r\n|\n|\r/);
  for (let index = 0; index < lines.length; index++) {
    let line = (lines[index] ?? "").replace(/^[ \t\f]+/, "");
    if (line === "" || line.startsWith("#") || line.startsWith("!")) continue;
    while (/(?:^|[^\\])(?:\\\\)*\\$/.test(line) && index < lines.length - 1) {
      line = line.slice(0, -1) + (lines[++index] ?? "").replace(/^[ \t\f]+/, "");
    }
    let at = 0;
    const take = (stop: string): string => {
      let out = "";
      for (; at < line.length && !stop.includes(line[at] ?? ""); at++) {
        if (line[at] !== "\\") out += line[at];
        else if (line[++at] === "u") {
          out += String.fromCharCode(Number.parseInt(line.slice(at + 1, at + 5), 16));
          at += 4;
        } else
          out +=
            ({ t: "\t", n: "\n", r: "\r", f: "\f" } as Record<string, string>)[line[at] ?? ""] ??
            line[at] ??
            "";
      }
      return out;
    };
    const key = take("=: \t\f");
    while (" \t\f".includes(line[at] ?? "x")) at++;
    if ("=:".includes(line[at] ?? "x")) at++;
    while (" \t\f".includes(line[at] ?? "x")) at++;
    found.set(key, take(""));
  }
  return found;
}

const hex = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;

const CASE: EntriesCase = {
  format: "properties",
  sections: fc.constant(""),
  hasTop: true,
  key: fc.oneof(
    fc.stringMatching(/^[a-z][a-z.]{0,6}$/),
    fc.constantFrom("a b", "a=b", "é", "#k", "k:", "a\\b"),
  ),
  value: anyText,
  header: () => "# no header",
  comments: ["# comment = x", "  ! other \\", ""],
  write(key, value, choices) {
    const safe = (text: string): string => text.replaceAll(/[^ -[\]-~]/g, hex).replaceAll(/[=: #!]/g, "\\$&");
    const written = safe(value);
    const continued = choices.chance(20) ? `\\\n    ${written}` : written;
    return safe(key) + choices.pick(["=", " = ", ": ", "  ", "\t=\t"]) + continued;
  },
  read: independent,
  runs: 150,
};

test("properties edit: a second parser reads the merged values of any file [agent 14.8]", () => {
  assertEdits(CASE);
});

test("properties edit: adding keys and removing them again gives the old text", () => {
  assertAddRemove(CASE);
});

test("properties edit: keeps separators, continuations and escapes of other keys", () => {
  const before = corpus("gradle.properties");
  const after = edit("properties", before, "repo.password=new\\u00e9\nrepo.user=build\nsigning.key=k");
  assert.equal(
    after,
    before
      .replace("repo.password : old\\\n    continued", "repo.password : new\\u00E9")
      .replace("repo.user=me", "repo.user=build") + "signing.key=k\n",
  );
});

test("properties edit: writes ASCII for every value [agent 14.22]", () => {
  const after = edit("properties", undefined, new Map([["é k", " \t\n\r\0日本😀=:#!\\"]]));
  assert.match(after, /^[\n -~]*$/);
  assert.deepEqual([...independent(after)], [["é k", " \t\n\r\0日本😀=:#!\\"]]);
});

test("properties parse: malformed and ambiguous input is refused and not quoted", () => {
  assertRefuses("unparsable_content", () => properties.parse("a=\\u12hunter2"), ["hunter2"]);
  assertRefuses("unparsable_content", () => properties.parse("a=1\na=2"));
  assertRefuses("unsupported", () => edit("properties", "a=1\na:2\n", "a=3"));
  assertRefuses("unsupported", () => edit("properties", "", new Map([["a", new Map([["b", "x"]])]])));
});

test("properties mask: values and comments are masked", () => {
  assert.equal(
    properties.mask("# hunter1\nkey = hunter2 \\\n  more\nbare\n"),
    "••••\nkey = ••••\n  ••••\nbare\n",
  );
});

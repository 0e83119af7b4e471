import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { documentFormat, type FormatName, type IniDialect } from "@devplat/document-edit";
import { AgentError } from "../../errors.ts";
import type { Printed } from "./printed-value.ts";
import { readAll, type Reading } from "./readers.test-kit.ts";
import { RuleTemplate } from "./rule-template.ts";
import { placeValues } from "./value-places.ts";

const folder = mkdtempSync(join(tmpdir(), "values-"));
after(() => rmSync(folder, { recursive: true }));

/** Random cases; each takes a process of its own for some readers. */
const RANDOM_CASES = 250;

/** A template with the field `v`, and where independent readers find it and the template's own setting. */
interface Shape {
  readonly format: FormatName;
  readonly dialect?: IniDialect;
  readonly template: string;
  readonly readers: readonly string[];
  readonly path: readonly string[];
  /** Where the setting `own` is. */
  readonly own?: readonly string[];
  /** Only values that every reader takes at this place. */
  readonly takes?: RegExp;
}

const YAML = ["PyYAML", "ruamel.yaml"];
const JSON_READERS = ["json", "jq"];
const DOTENV = ["sh", "python-dotenv", "dotenv", "node --env-file"];
const GENERIC = ["configparser", "configparser (raw)"];
const yaml = (place: string): Shape => ({
  format: "yaml",
  template: `v: ${place}\nafter: own\n`,
  readers: YAML,
  path: ["v"],
  own: ["after"],
});
const json = (place: string): Shape => ({
  format: "json",
  template: `{"v": ${place}, "after": "own"}`,
  readers: JSON_READERS,
  path: ["v"],
  own: ["after"],
});
const toml = (place: string): Shape => ({
  format: "toml",
  template: `[r.m]\nv = ${place}\nafter = "own"\n`,
  readers: ["tomllib"],
  path: ["r", "m", "v"],
  own: ["r", "m", "after"],
});
const dotenv = (place: string): Shape => ({
  format: "dotenv",
  template: `V=${place}\nAFTER=own\n`,
  readers: DOTENV,
  path: ["V"],
  own: ["AFTER"],
});
const ini = (dialect: IniDialect, readers: readonly string[], place: string): Shape => ({
  format: "ini",
  dialect,
  template: `[s]\nv = ${place}\nafter = own\n`,
  readers,
  path: ["s", "v"],
  own: ["s", "after"],
});
const npmrc = (place: string): Shape => ({
  format: "ini",
  dialect: "npmrc",
  template: `//r/:_authToken=${place}\nafter=own\n`,
  readers: ["ini"],
  path: ["//r/:_authToken"],
  own: ["after"],
});
const netrc = (place: string): Shape => ({
  format: "netrc",
  template: `machine 127.0.0.1 login me password ${place}\nmachine other login x password own\n`,
  readers: ["netrc", "curl"],
  path: ["127.0.0.1"],
});
const properties = (place: string): Shape => ({
  format: "properties",
  template: `v=${place}\nafter=own\n`,
  readers: ["javaproperties"],
  path: ["v"],
  own: ["after"],
});
const ssh = (keyword: string, place: string): Shape => ({
  format: "ssh_config",
  template: `Host h\n  ${keyword} ${place}\n  HostName own\n`,
  readers: ["ssh -G"],
  path: ["h", keyword.toLowerCase()],
  own: ["h", "hostname"],
});

/** The shapes of docs/agent/rules.md, each with and without quotes and pipes. */
const SHAPES: readonly Shape[] = [
  ...[
    "{{ .v }}",
    '"{{ .v }}"',
    "'{{ .v }}'",
    "{{ .v | quote }}",
    "{{ .v | toJSON }}",
    "{{ .v | toYAML }}",
  ].map(yaml),
  yaml("|\n{{ .v | indent 2 }}"),
  { ...yaml(""), template: "{v: {{ .v }}, after: own}" },
  {
    ...yaml(""),
    template: "users:\n  - name: dev\n    user: { token: {{ .v | quote }} }\nafter: own\n",
    path: ["users", "0", "user", "token"],
  },
  ...["{{ .v }}", '"{{ .v }}"', "{{ .v | quote }}", "{{ .v | toJSON }}"].map(json),
  ...["{{ .v }}", '"{{ .v }}"', "'{{ .v }}'", "{{ .v | quote }}", "{{ .v | toJSON }}"].map(toml),
  ...["{{ .v }}", '"{{ .v }}"', "'{{ .v }}'", "{{ .v | quote }}", "{{ .v | toJSON }}"].map(dotenv),
  ...["{{ .v }}", "{{ .v | quote }}"].flatMap((place) => [
    ini("generic", GENERIC, place),
    ini("pip", ["pip"], place),
    ini("aws", ["configparser (raw)"], place),
    properties(place),
  ]),
  ...["{{ .v }}", '"{{ .v }}"', "{{ .v | quote }}", "{{ .v | toJSON }}"].flatMap((place) => [
    npmrc(place),
    ini("gitconfig", ["git"], place),
    netrc(place),
    ssh("User", place),
    ssh("IdentityFile", place),
  ]),
];

const PEM = "-----BEGIN KEY-----\nMIIB/+=\nAAAA\n-----END KEY-----\n";
const VALUES = [
  "plain",
  "p4ss #word",
  "p4ss ;word",
  "#b",
  ";b",
  'x" # y',
  "x' # y",
  "a\\",
  "a\\\\b",
  "\\\\host\\c",
  "a\\nb",
  "\\t",
  "a;b",
  "a #b",
  "$HOME",
  "${HOME}",
  "$(id)",
  "`id`",
  "both \" and '",
  "it's",
  '"',
  "'",
  '"quoted"',
  "'quoted'",
  " lead",
  "trail ",
  "  ",
  "",
  "a\u2028b",
  "a\u2029b",
  "a\u0085b",
  "\u0085",
  "a\u00a0",
  "\ufeffa",
  "a\0b",
  "a\tb",
  "\t",
  "%d",
  "%(home)s",
  "%%",
  "!x",
  "!!int 1",
  "~",
  "~/key",
  "null",
  "true",
  "false",
  "no",
  "yes",
  "on",
  "1e3",
  "012",
  "0x1F",
  "1_000",
  "1:30",
  "1.10",
  "443",
  "2026-01-01",
  ".5",
  "=",
  "=x",
  "<<",
  "a: b",
  "a:",
  "- a",
  "?",
  "? a",
  "{a: b}",
  "{",
  "[1, 2]",
  "&a",
  "*a",
  "|",
  ">",
  "@a",
  "---",
  "...",
  "// c",
  "/* c",
  'x", "after": "evil"} //',
  "emoji 😀",
  "é",
  "\x7f",
  "\x1b[0m",
  "a\rb",
  "a\nb",
  "\na",
  "a\n\nb",
  "a\n#b",
  "a\n b",
  PEM,
  "a,b",
  "a]b",
  "[s]",
  "default",
  "macdef x",
];

/** The document that a template gives with a value, or its refusal. */
function written(shape: Shape, value: string): string | AgentError {
  const format = documentFormat(shape.format, { dialect: shape.dialect });
  const template = new RuleTemplate("rule", shape.template);
  const surroundings = {
    data: new Map([["v", value]]),
    username: "u",
    env: () => undefined,
    secret: () => undefined,
  };
  const render = (replace: (index: number, text: string) => string): string => {
    let index = 0;
    const outcome = template.execute(surroundings, (text) => replace(index++, text));
    assert.ok(outcome.kind === "text");
    return outcome.text;
  };
  const printed: Printed[] = [];
  const outcome = template.execute(surroundings, (text, interpolation) => {
    printed.push({ ...interpolation, text });
    return text;
  });
  assert.ok(outcome.kind === "text");
  try {
    return format.edit(undefined, placeValues(format, { text: outcome.text, printed, render })).text;
  } catch (error) {
    assert.ok(error instanceof AgentError, `${shape.format} ${JSON.stringify(value)}: ${String(error)}`);
    return error;
  }
}

/** Holds each value to its rule: refused with the line, the reason and a hint, or read back as it is by every reader. */
async function check(cases: readonly (readonly [Shape, string])[]): Promise<string[]> {
  const problems: string[] = [];
  const readings: (Reading & { readonly expected: string; readonly isBlock: boolean })[] = [];
  for (const [shape, value] of cases) {
    const text = written(shape, value);
    const name = `${shape.dialect ?? shape.format} ${shape.template.split("\n", 2).join("⏎")}`;
    if (typeof text !== "string") {
      const isClear = /^template line \d+: the value /.test(text.message) && text.hint !== undefined;
      if (!isClear) problems.push(`${name} ${JSON.stringify(value)}: ${text.message}`);
      continue;
    }
    const isBlock = shape.template.includes("|\n");
    for (const reader of shape.readers) {
      readings.push({ reader, text, path: shape.path, expected: value, isBlock });
      if (shape.own !== undefined) readings.push({ reader, text, path: shape.own, expected: "own", isBlock });
    }
  }
  const found = await readAll(readings, folder);
  for (const [index, { reader, text, expected, isBlock }] of readings.entries()) {
    const answer = found[index];
    if (answer !== undefined && "value" in answer) {
      if (answer.value === expected) continue;
      // A block scalar of YAML ends with a line break.
      if (isBlock && answer.value === `${expected}\n`) continue;
    }
    problems.push(
      `${reader}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(answer)} in\n${text}`,
    );
  }
  return problems;
}

test("placeValues: odd values in the guide's templates are refused, or read unchanged", async () => {
  const problems = await check(SHAPES.flatMap((shape) => VALUES.map((value) => [shape, value] as const)));
  assert.deepEqual(problems.slice(0, 40), [], `${problems.length} problems`);
});

test("placeValues: random values are refused, or independent readers read them alike", async () => {
  const piece = fc.oneof(
    fc.constantFrom(...VALUES),
    fc.string({ unit: "binary", maxLength: 4 }),
    fc.constantFrom(" ", "#", '"', "'", "\\", ":", "\n", "$", "{", "}", ",", ";", "=", "\t", "a"),
  );
  const value = fc
    .array(piece, { minLength: 1, maxLength: 4 })
    .map((pieces) => pieces.join(""))
    .filter((text) => text.isWellFormed());
  const cases = fc.sample(fc.tuple(fc.constantFrom(...SHAPES), value), RANDOM_CASES);
  const problems = await check(cases);
  assert.deepEqual(problems.slice(0, 20), [], `${problems.length} problems`);
});

test("placeValues: accepts a PEM in dotenv with quote; without, the error names quote", async () => {
  const quoted = dotenv("{{ .v | quote }}");
  assert.ok(typeof written(quoted, PEM) === "string");
  assert.deepEqual(await check([[quoted, PEM]]), []);
  const refusal = written(dotenv("{{ .v }}"), PEM);
  assert.ok(refusal instanceof AgentError);
  assert.match(refusal.message, /^template line 1: the value holds a line break/);
  assert.equal(refusal.hint, "Pipe it through quote.");
});

test("placeValues: quote carries every value in yaml, json, toml and properties", () => {
  for (const shape of SHAPES.filter(({ template }) => template.includes("{{ .v | quote }}"))) {
    if (!["yaml", "json", "toml", "properties"].includes(shape.format)) continue;
    for (const value of VALUES)
      assert.equal(typeof written(shape, value), "string", JSON.stringify([shape, value]));
  }
});

test("placeValues: accepts a comment mark without a pipe if the format has quotes", async () => {
  const shapes = [npmrc, netrc, yaml, toml, json, dotenv].map((shape) => shape("{{ .v }}"));
  const cases = shapes.map((shape) => [shape, "p4ss #word"] as const);
  for (const [shape, value] of cases) assert.equal(typeof written(shape, value), "string", shape.format);
  assert.deepEqual(await check(cases), []);
});

test("placeValues: keeps the template's own numbers, booleans and escapes unchanged", () => {
  const found = (shape: Shape, value: string): unknown => written(shape, value);
  assert.equal(found(yaml("{{ .v }}"), "443"), "v: 443\nafter: own\n");
  assert.equal(found(yaml("{{ .v }}"), "true"), "v: true\nafter: own\n");
  assert.equal(found(yaml('{{ .none | default "null" }}'), "x"), "v: null\nafter: own\n");
  assert.equal(found(yaml(`'{{ .v | replace "'" "''" }}'`), "it's"), "v: it's\nafter: own\n");
  assert.match(String(found(json('{{ printf "%q" .v }}'), 'a "b"')), /"v": "a \\"b\\""/);
  const refusal = found(yaml(`"{{ .v | replace "'" "''" }}"`), `it's #"`);
  assert.ok(refusal instanceof AgentError);
  assert.match(String(refusal.hint), /quote/);
});

test("placeValues: npmrc refuses true, false, null as values, not in the template", () => {
  for (const value of ["true", "false", "null"]) {
    for (const place of ["{{ .v }}", '"{{ .v }}"', "{{ .v | quote }}"]) {
      const refusal = written(npmrc(place), value);
      assert.ok(refusal instanceof AgentError, place);
      assert.match(
        refusal.message,
        /^template line 1: the value is a word that npm takes for a boolean or null/,
      );
      assert.match(String(refusal.hint), /^Store another value/);
    }
    assert.equal(
      written(npmrc("x{{ .v }}\nstrict-ssl=true"), value),
      `//r/:_authToken=x${value}\nstrict-ssl=true\nafter=own\n`,
    );
  }
});

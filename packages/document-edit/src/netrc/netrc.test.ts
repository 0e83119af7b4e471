import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { documentFormat, type EditMap, type EditValue } from "../index.ts";
import { Choices, assertKeepsLines, corpus, edit, assertRefuses } from "../../test/editing.test-kit.ts";

const netrc = documentFormat("netrc");

/** A second parser, by curl's rules (lib/netrc.c): line by line, quotes with escapes, `#` in place of a keyword, macros. */
function independent(text: string): { machine: string; login: string; password: string | undefined }[] {
  const words: string[] = [];
  let inMacro = false;
  for (const line of text.split(/\r?\n/)) {
    if (inMacro) {
      inMacro = line !== "";
      continue;
    }
    for (const [, quoted, bare] of line.matchAll(/"((?:[^"\\]|\\.)*)"|([^\s"][^\s]*)/g)) {
      if (bare?.startsWith("#") === true && words.length % 2 === 0) break;
      const escapes: Record<string, string> = { n: "\n", r: "\r", t: "\t" };
      words.push(bare ?? (quoted ?? "").replaceAll(/\\(.)/g, (_all, char: string) => escapes[char] ?? char));
      if (bare === "default") words.push("");
      inMacro ||= words.at(-2) === "macdef" && words.length % 2 === 0;
    }
  }
  const entries: { machine: string; login: string; password: string | undefined }[] = [];
  for (let at = 0; at < words.length; at += 2) {
    const [keyword, value = ""] = words.slice(at, at + 2);
    const entry = entries.at(-1);
    if (keyword === "machine" || keyword === "default")
      entries.push({ machine: value, login: "", password: undefined });
    else if (entry !== undefined && keyword === "login") entry.login = value;
    else if (entry !== undefined && keyword === "password") entry.password = value;
  }
  return entries;
}

const anyValue = fc.oneof(
  fc.stringMatching(/^[!-~]{1,10}$/),
  fc.constantFrom(
    "",
    " ",
    "a b",
    "#x",
    '"',
    '"q"',
    "\\",
    "a\\nb",
    "tab\there",
    "é 日本",
    "machine",
    "login",
    "'",
    "x#y",
    'mid"quote',
  ),
);
const anyHost = fc.stringMatching(/^[a-z]{1,6}\.example$/);
const anyEntry = fc.record({
  machine: anyHost,
  login: fc.stringMatching(/^[a-z]{1,5}$/),
  password: anyValue,
});

function asContent(entries: readonly { machine: string; login: string; password: string }[]): EditMap {
  const content = new Map<string, Map<string, EditValue>>();
  for (const { machine, login, password } of entries) {
    content.set(machine, (content.get(machine) ?? new Map()).set(login, new Map([["password", password]])));
  }
  return content;
}

function print(
  entries: readonly { machine: string; login: string; password: string }[],
  choices: Choices,
): string {
  const ending = choices.pick(["\n", "\r\n"]);
  const blocks = entries.map(({ machine, login, password }) => {
    const separator = choices.pick([" ", `${ending}  `, `${ending}\t`, "   "]);
    const written = /^[^\s"#\\]+$/.test(password) ? password : `"${password.replaceAll(/["\\]/g, "\\$&")}"`;
    const note = choices.pick(["", "", ` # machine old`, `${ending}# login x`]);
    const macro = choices.chance(15) ? `${ending}macdef init${ending}machine in macro${ending}` : "";
    return `machine ${machine}${separator}login ${login}${separator}password ${written}${note}${macro}`;
  });
  const tail = choices.chance(40) ? `# last${ending}default login anonymous password guest` : "";
  return [...blocks, tail].join(ending) + choices.pick(["", ending]);
}

test("netrc edit: a second parser reads any entries, other lines stay, default is last [agent 14.5]", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(anyEntry, { selector: ({ machine, login }) => `${machine} ${login}`, maxLength: 5 }),
      fc.uniqueArray(anyEntry, {
        selector: ({ machine, login }) => `${machine} ${login}`,
        minLength: 1,
        maxLength: 3,
      }),
      fc.integer(),
      (entries, wanted, seed) => {
        const before = print(entries, new Choices(seed));
        const changed = entries
          .slice(0, seed % 2 === 0 ? 1 : 0)
          .map((entry) => ({ ...entry, password: "changed" }));
        const all = [
          ...changed,
          ...wanted.filter(
            (entry) =>
              !changed.some((other) => other.machine === entry.machine && other.login === entry.login),
          ),
        ];
        const after = edit("netrc", before, asContent(all));
        const found = independent(after);
        for (const entry of all)
          assert.ok(
            found.some(
              (other) =>
                other.machine === entry.machine &&
                other.login === entry.login &&
                other.password === entry.password,
            ),
            after,
          );
        for (const entry of entries) {
          if (all.some((other) => other.machine === entry.machine && other.login === entry.login)) continue;
          assert.ok(
            found.some((other) => other.machine === entry.machine && other.password === entry.password),
            after,
          );
        }
        const last = found.findIndex(({ machine }) => machine === "");
        assert.ok(last === -1 || last === found.length - 1, after);
        const kept = before
          .split(/(?<=\n)/)
          .filter((line) => line.endsWith("\n") && /^(?:#|macdef|machine in macro)/.test(line));
        assertKeepsLines(after, kept);
      },
    ),
    { numRuns: 200 },
  );
});

test("netrc edit: adding entries and removing them again gives the old text", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(anyEntry, { selector: ({ machine }) => machine, maxLength: 4 }),
      anyValue,
      fc.integer(),
      (entries, password, seed) => {
        const before = print(entries, new Choices(seed));
        const added = netrc.edit(before, asContent([{ machine: "new.test", login: "me", password }]));
        const removed = netrc.edit(added.text, new Map(), { remove: added.managed });
        if (!/macdef/.test(before) && before.endsWith("\n")) assert.equal(removed.text, before);
        else assert.equal(removed.text.trimEnd(), before.trimEnd());
      },
    ),
    { numRuns: 100 },
  );
});

test("netrc edit: a real file keeps its layout, and new machines are before default [agent 14.18]", () => {
  const before = corpus("netrc");
  const after = edit(
    "netrc",
    before,
    'machine api.example.org login alice password "new token"\nmachine new.example.org login bob password secret',
  );
  assert.equal(
    after,
    before
      .replace("password old-token", 'password "new token"')
      .replace(
        "# everything else",
        "machine new.example.org\n    login bob\n    password secret\n# everything else",
      ),
  );
});

test("netrc edit: a machine with another login is another entry [agent 14.18]", () => {
  assert.equal(
    edit("netrc", "machine a login x password 1\n", "machine a login y password 2"),
    "machine a login x password 1\nmachine a login y password 2\n",
  );
});

test("netrc remove: removes an entry with its last field, unless it has a macro", () => {
  const remove = [["a", "b", "password"]];
  assert.equal(
    edit("netrc", "machine a login b password c # mine\nmachine d login e password f\n", new Map(), {
      remove,
    }),
    "# mine\nmachine d login e password f\n",
  );
  assert.equal(
    edit("netrc", "machine a login b password c account z\n", new Map(), { remove }),
    "machine a login b account z\n",
  );
  assert.equal(
    edit("netrc", "machine a login b password c\nmacdef init\ncd\n\n", new Map(), { remove }),
    "machine a login b\nmacdef init\ncd\n\n",
  );
});

test("netrc edit: a value with a line break or NUL is refused and not quoted", () => {
  for (const value of ["hunter2\n", "a\rhunter2", "\0hunter2", "x\nmachine evil login hunter2"]) {
    assertRefuses(
      "unsafe_value",
      () => edit("netrc", "", asContent([{ machine: "a", login: "b", password: value }])),
      ["hunter2"],
    );
    assertRefuses(
      "unsafe_value",
      () => edit("netrc", "", asContent([{ machine: "a", login: value, password: "x" }])),
      ["hunter2"],
    );
  }
});

test("netrc parse: malformed and ambiguous input is refused and not quoted", () => {
  for (const text of [
    "hunter2",
    "machine",
    "machine a password",
    'machine a password "hunter2',
    "login hunter2",
    "machine a login b hunter2 c",
    'machine "" login x',
    "machine a password x password hunter2",
  ]) {
    assertRefuses("unparsable_content", () => netrc.parse(text), ["hunter2"]);
  }
  assertRefuses("unparsable_existing", () => edit("netrc", "hunter2 x", "machine a login b password c"), [
    "hunter2",
  ]);
  const twice = "machine a login b password 1\nmachine a login b password 2\n";
  assertRefuses("unparsable_content", () => netrc.parse(twice));
  assertRefuses("unsupported", () => edit("netrc", twice, "machine a login b password c"));
  assert.equal(
    edit("netrc", twice, "machine z login b password c"),
    `${twice}machine z login b password c\n`,
  );
});

test("netrc get: gives password and account of machine and login, and of default", () => {
  const text = 'machine a login b password "c d" account e\ndefault login x password y';
  assert.deepEqual(
    netrc.get(text, [
      ["a", "b", "password"],
      ["a", "b", "account"],
      ["", "x", "password"],
      ["a", "z", "password"],
    ]),
    ["c d", "e", "y", undefined],
  );
});

test("netrc mask: passwords, accounts, macros and comments are masked", () => {
  assert.equal(
    netrc.mask(
      '# old hunter1\nmachine a login b\n  password "hunter 2" # x\nmacdef m\n  quote hunter3\n\ndefault account z',
    ),
    "••••\nmachine a login b\n  password •••• ••••\nmacdef m\n  ••••\n\ndefault account ••••",
  );
});

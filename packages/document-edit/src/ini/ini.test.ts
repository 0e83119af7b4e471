import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { documentFormat, iniDialectOf, type EditOptions, type IniDialect } from "../index.ts";
import { assertAddRemove, assertEdits, type EntriesCase } from "../../test/entries.test-kit.ts";
import { corpus, edit, assertRefuses } from "../../test/editing.test-kit.ts";

const edited = (
  dialect: IniDialect,
  before: string | undefined,
  content: string,
  options: EditOptions = {},
): string => edit("ini", before, documentFormat("ini", { dialect }).parse(content), options, { dialect });

/** Values of the file from `git config --list`. */
function git(text: string): Map<string, string> {
  const { stdout, stderr, status } = spawnSync("git", ["config", "-f", "-", "--null", "--list"], {
    input: text,
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
  return new Map(
    stdout
      .split("\0")
      .slice(0, -1)
      .map((pair) => {
        const [name = "", ...value] = pair.split("\n");
        const dot = name.lastIndexOf(".");
        return [`${name.slice(0, dot)}\0${name.slice(dot + 1)}`, value.join("\n")];
      }),
  );
}

/** Values as in Python's RawConfigParser, for the files of these tests: a deeper indented line continues the value. */
function configparser(text: string): Map<string, string> {
  const found = new Map<string, string>();
  let section = "";
  let last: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    const trimmed = line.trim();
    if (trimmed === "" || /^[#;]/.test(trimmed)) continue;
    if (/^\s/.test(line) && last !== undefined) {
      found.set(last, `${found.get(last)}\n${trimmed}`);
    } else if (trimmed.startsWith("[")) {
      section = trimmed.slice(1, trimmed.indexOf("]"));
      last = undefined;
    } else {
      const [, key = "", value = ""] = /^(.*?)\s*[=:]\s*(.*)$/.exec(trimmed) ?? [];
      last = section === "" ? key : `${section}\0${key}`;
      found.set(last, value);
    }
  }
  return found;
}

/** Values as in decode of the `ini` package, for keys without sections. */
function npm(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of text.split(/[\r\n]+/)) {
    if (line === "" || /^\s*[;#]/.test(line) || /^\s*$/.test(line)) continue;
    const [, key = "", raw = ""] = /^([^=]+)(?:=(.*))?$/.exec(line) ?? [];
    let value = raw.trim();
    if (/^".*"$/.test(value)) value = JSON.parse(value) as string;
    else value = (/^(?:\\.|[^;#\\])*/.exec(value)?.[0] ?? "").trim().replaceAll(/\\([\\;#])/g, "$1");
    found.set(key.trim(), value);
  }
  return found;
}

const CASES: Record<string, EntriesCase> = {
  gitconfig: {
    format: "ini",
    dialect: "gitconfig",
    sections: fc.constantFrom(
      "user",
      "core",
      "remote.origin",
      "url.https://x.example/",
      "branch.a.b",
      'x.q"u',
      "x.b\\s",
    ),
    hasTop: false,
    key: fc.stringMatching(/^[a-z][a-z0-9-]{0,5}$/),
    value: fc.oneof(
      fc.stringMatching(/^[ -~]{0,10}$/),
      fc.constantFrom(
        " lead",
        "trail ",
        "a#b",
        "a;b",
        '"q"',
        'mid"quote',
        "\\",
        "a\\nb",
        "line\nbreak",
        "tab\there",
        "é 日本",
        "true",
        "$(id)",
      ),
    ),
    write(key, value, choices) {
      const quoted = `"${value.replaceAll(/["\\]/g, "\\$&").replaceAll("\n", "\\n")}"`;
      const bare = /^[A-Za-z0-9]+$/.test(value) && choices.chance(70) ? value : quoted;
      return `${choices.pick(["\t", "  ", ""])}${key}${choices.pick([" = ", "=", " =\t"])}${bare}${choices.pick(["", " # it's", " ; [x]"])}`;
    },
    header(name) {
      const dot = name.indexOf(".");
      return dot === -1
        ? `[${name}]`
        : `[${name.slice(0, dot)} "${name.slice(dot + 1).replaceAll(/["\\]/g, "\\$&")}"]`;
    },
    comments: ["# a = b", "\t; [section]", ""],
    read: git,
    runs: 60,
  },
  pip: {
    format: "ini",
    dialect: "pip",
    sections: fc.stringMatching(/^[a-z][a-z -]{0,4}[a-z]$/),
    hasTop: false,
    key: fc.stringMatching(/^[a-z][a-z0-9-]{0,6}$/),
    value: fc
      .oneof(
        fc.stringMatching(/^[!-~]([ -~]{0,8}[!-~])?$/),
        fc.constantFrom(
          "",
          "https://u:p@h/simple",
          "a # b",
          "a ; b",
          "x\ny\nz",
          "\nhttps://a\nhttps://b",
          "%(x)s",
          "é",
          "[x]",
          "a=b",
        ),
      )
      .filter((text) => !/\n[#;]/.test(text)),
    write: (key, value, choices) =>
      `${key}${choices.pick([" = ", "=", ": "])}${value.replaceAll("\n", choices.pick(["\n    ", "\n\t"]))}`,
    header: (name) => `[${name}]`,
    comments: ["# a = b", "; [section]", ""],
    read: configparser,
    runs: 120,
  },
  aws: {
    format: "ini",
    dialect: "aws",
    sections: fc.stringMatching(/^(profile )?[a-z]{1,5}$/),
    hasTop: false,
    key: fc.stringMatching(/^aws_[a-z]{1,6}$/),
    value: fc.stringMatching(/^[A-Za-z0-9/+=]{0,20}$/),
    write: (key, value, choices) => `${key}${choices.pick([" = ", "="])}${value}`,
    header: (name) => `[${name}]`,
    comments: ["# a = b", "; [section]", ""],
    read: configparser,
    runs: 80,
  },
  npmrc: {
    format: "ini",
    dialect: "npmrc",
    sections: fc.constant(""),
    hasTop: true,
    key: fc.oneof(
      fc.stringMatching(/^[a-z][a-z-]{0,6}$/),
      fc.stringMatching(/^\/\/[a-z]{1,5}\.example\/:_[a-z]{1,5}$/),
    ),
    value: fc.oneof(
      // Values that need quotes cannot be before a comment. They have their own test.
      fc
        .stringMatching(/^[ -~]{0,10}$/)
        .map((text) => text.trim())
        .filter((text) => !/^["'](?:.*["'])?$/.test(text)),
      fc.constantFrom("npm_abc==", "${NPM_TOKEN}", "a;b", "a#b", "\\;", "\\", "\\\\", "a'b", "é"),
    ),
    write(key, value, choices) {
      const separator = choices.pick(["=", " = "]);
      if (!/^[A-Za-z0-9=_]+$/.test(value) || choices.chance(30))
        return key + separator + JSON.stringify(value);
      return key + separator + value + choices.pick(["", " ; note", " # note"]);
    },
    header: () => "# none",
    comments: ["# a = b", "; c", ""],
    read: npm,
    runs: 120,
  },
};

for (const [name, of] of Object.entries(CASES)) {
  test(`ini edit: another parser reads the merged values of any ${name} file [agent 14.3]`, () => {
    assertEdits(of);
  });
  test(`ini edit: adding and removing keys of ${name} files gives the old text`, () => {
    assertAddRemove(of);
  });
}

test("ini generic: comments, separators, indentation and case stay, new keys match", () => {
  assert.equal(
    edited(
      "generic",
      "; top\n[a]\n  Key : old ; why\n  y: 2\n\n[b]\nz=3\n",
      "[a]\nKey = new\nnew = 1\n[b]\nw = 4\n[c]\nv = 5",
    ),
    "; top\n[a]\n  Key : new ; why\n  y: 2\n  new : 1\n\n[b]\nz=3\nw=4\n\n[c]\n  v : 5\n",
  );
});

test("ini generic: a key in another case is edited, a new one keeps its case [agent 14.16]", () => {
  const format = documentFormat("ini", { dialect: "generic" });
  const before = "[distutils]\nIndex-Servers = pypi\n";
  const content = format.parse("[distutils]\nindex-servers=mine\nNewKey=1\n");
  const { text, managed } = format.edit(before, content);
  assert.equal(text, "[distutils]\nIndex-Servers = mine\nNewKey = 1\n");
  assert.deepEqual(managed, [
    ["distutils", "index-servers"],
    ["distutils", "NewKey"],
  ]);
  assert.equal(format.edit(text, content).text, text);
  assert.deepEqual(format.get(text, [["distutils", "index-servers"]]), ["mine"]);
  const other = format.parse("[distutils]\nINDEX-SERVERS=x\n");
  const moved = format.edit(text, other, { remove: [["distutils", "index-servers"]] });
  assert.equal(moved.text, "[distutils]\nIndex-Servers = x\nNewKey = 1\n");
  const removed = format.edit(text, new Map(), { remove: managed });
  assert.equal(removed.text.includes("="), false);
});

test("ini generic: a key in two cases is edited by its exact name, or refused", () => {
  assert.equal(edited("generic", "[s]\nKey = 1\nkey = 2\n", "[s]\nkey = 3"), "[s]\nKey = 1\nkey = 3\n");
  assertRefuses("unsupported", () => edited("generic", "[s]\nKey = 1\nkey = 2\n", "[s]\nKEY = 3"));
  assertRefuses("unparsable_content", () => edited("generic", undefined, "[s]\nKey = 1\nkey = 2\n"));
});

test("ini npmrc: registry keys, lists and quoted values", () => {
  const before = corpus("npmrc");
  assert.equal(
    edited(
      "npmrc",
      before,
      '//registry.example.org/:_authToken=new==\nca[]="-----BEGIN-----\\nb"\nca[]=c\n//new.example.org/:_authToken=${NPM_TOKEN}',
    ),
    before
      .replace(":_authToken=old-token ; ", ":_authToken=new== ; ")
      .replace('ca[]="-----BEGIN-----\\na"\n', 'ca[]="-----BEGIN-----\\nb"\nca[]=c\n')
      .replace("fund=false", "fund=false\n//new.example.org/:_authToken=${NPM_TOKEN}"),
  );
});

test("ini npmrc: a value that needs quotes is quoted as JSON, or refused at a comment", () => {
  for (const value of [" x ", "a\nb", '"q"', "\t"]) {
    const after = edit("ini", "k=old\n", new Map([["k", value]]), {}, { dialect: "npmrc" });
    assert.equal(npm(after).get("k"), value);
    assertRefuses("unsupported", () =>
      edit("ini", "k=old ; note\n", new Map([["k", value]]), {}, { dialect: "npmrc" }),
    );
  }
});

test("ini npmrc: values that npm would change are quoted, such names are refused", () => {
  for (const value of ["'", '"', "x\u2028y", "\u2029", "' '", "a\u2028;b"]) {
    const after = edit("ini", "a=1\n", new Map([["k", value]]), {}, { dialect: "npmrc" });
    assert.equal(npm(after).get("k"), value);
    // The pattern of the ini package for a line. Its dot does not match U+2028.
    assert.match(after.split("\n")[1] ?? "", /^([^=]+)(=(.*))?$/);
  }
  for (const key of ['"k"', "'k'", "a;b", "a\\#b", "k\u2028", "'"]) {
    assertRefuses("unsafe_value", () =>
      edit("ini", "a=1\n", new Map([[key, "v"]]), {}, { dialect: "npmrc" }),
    );
  }
  assert.equal(edit("ini", '"k" = old\n', new Map([["k", "v"]]), {}, { dialect: "npmrc" }), '"k" = v\n');
  assertRefuses("unparsable_existing", () =>
    edit("ini", "[s] ; c\nk=1\n", new Map([["k", "v"]]), {}, { dialect: "npmrc" }),
  );
});

test("ini: every dialect refuses names with control characters", () => {
  for (const dialect of ["generic", "npmrc", "gitconfig", "pip", "aws"] as const) {
    for (const name of ["a\u001b[2J", "a\tb", "a\u009b"]) {
      assertRefuses("unsafe_value", () =>
        edit("ini", "", new Map([["s", new Map([[name, "v"]])]]), {}, { dialect }),
      );
      assertRefuses("unsafe_value", () =>
        edit("ini", "", new Map([[name, new Map([["k", "v"]])]]), {}, { dialect }),
      );
    }
  }
});

test("ini gitconfig: subsections, lists, bare keys, keys after a header", () => {
  const before = corpus("gitconfig");
  assert.equal(
    edited(
      "gitconfig",
      before,
      '[user]\nsigningKey = "ssh-ed25519 AAAA #1"\n[url "https://token@example.org/"]\ninsteadOf = https://example.org/\n[remote "origin"]\nfetch = a\nfetch = b\nfetch = c\n[core]\nbare = false',
    ),
    before
      .replace("signingkey = old ; key", 'signingkey = "ssh-ed25519 AAAA #1" ; key')
      .replace(
        "\tfetch = +refs/heads/*:refs/remotes/origin/*\n\tfetch = +refs/tags/*:refs/tags/*\n",
        "\tfetch = a\n\tfetch = b\n\tfetch = c\n",
      )
      .replace("[core] bare\n", "[core] bare = false\n") +
      '[url "https://token@example.org/"]\n\tinsteadof = https://example.org/\n',
  );
});

test("ini pip: a value of several lines is replaced, comments in it stay", () => {
  const before = corpus("pip.conf");
  assert.equal(
    edited("pip", before, "[global]\nextra-index-url =\n  https://x\n  https://y\n[install]\nuser = yes"),
    before
      .replace(
        "    https://a.example.org/simple\n    # the mirror\n    https://b.example.org/simple\n",
        "    https://x\n    https://y\n    # the mirror\n",
      )
      .replace("no-cache-dir: true", "no-cache-dir: true\nuser: yes"),
  );
});

test("ini aws: sets the keys of a profile, and adds another profile", () => {
  assert.equal(
    edited(
      "aws",
      "[default]\naws_access_key_id=AKIA1\naws_secret_access_key=old\n",
      "[default]\naws_secret_access_key = new/+\n[profile ci]\nregion = eu-west-1",
    ),
    "[default]\naws_access_key_id=AKIA1\naws_secret_access_key=new/+\n\n[profile ci]\nregion=eu-west-1\n",
  );
});

test("ini remove: removes an empty section, keeps comments and other sections", () => {
  assert.equal(
    edited("generic", "[a]\nx = 1\n\n[b]\n# why\nz = 3\n", "", { remove: [["b", "z"]] }),
    "[a]\nx = 1\n\n# why\n",
  );
  assert.equal(
    edited("gitconfig", "[a]\n\tx = 1\n[b]\n\tz = 3 # c\n\ty = 1\n", "", {
      remove: [
        ["b", "z"],
        ["a", "x"],
      ],
    }),
    "[b]\n\t# c\n\ty = 1\n",
  );
});

test("ini edit: values that a dialect cannot represent are refused and not quoted", () => {
  const table: [IniDialect, string][] = [
    ["generic", " hunter2"],
    ["generic", "hunter2 # x"],
    ["generic", "#hunter2"],
    ["generic", "hunter2\n[evil]\n\nx"],
    ["generic", "hunter2\r[evil]"],
    ["pip", "hunter2\n#x"],
    ["pip", "hunter2\0"],
    ["aws", "hunter2 ;x"],
    ["aws", "hunter2\rx = y"],
    ["gitconfig", "hunter2\r"],
    ["gitconfig", "hunter2\0"],
    ["npmrc", "hunter2\0"],
  ];
  for (const [dialect, value] of table) {
    assertRefuses(
      "unsafe_value",
      () => edit("ini", "", new Map([["s", new Map([["k", value]])]]), {}, { dialect }),
      ["hunter2"],
    );
  }
});

test("ini edit: a line break in a value never makes a key or a section", () => {
  for (const dialect of ["generic", "pip", "aws"] as const) {
    const after = edit(
      "ini",
      "[a]\nx = 1\n",
      new Map([["a", new Map([["x", "1\n[evil]\nk = v"]])]]),
      {},
      { dialect },
    );
    assert.deepEqual([...configparser(after).keys()], ["a\0x"]);
  }
  const after = edit(
    "ini",
    "",
    new Map([["a", new Map([["x", "1\n[evil]\nk = v"]])]]),
    {},
    { dialect: "gitconfig" },
  );
  assert.deepEqual([...git(after)], [["a\0x", "1\n[evil]\nk = v"]]);
  assertRefuses("unsafe_value", () => edit("ini", "", new Map([["a]\n[b", new Map([["x", "1"]])]])));
  assertRefuses("unsafe_value", () => edit("ini", "", new Map([["a", new Map([["x = 1\ny", "1"]])]])));
});

test("ini edit: a duplicate managed key or section is refused, others are not", () => {
  assertRefuses("unsupported", () => edited("generic", "[a]\nx = 1\nx = 2\n", "[a]\nx = 3"));
  assertRefuses("unsupported", () => edited("aws", "[a]\nx = 1\n[a]\ny = 2\n", "[a]\nx = 3"));
  assertRefuses("unsupported", () => edited("aws", "[a]\nx = 1\nX = 2\n", "[a]\nx = 3"));
  assertRefuses("unsupported", () => edited("npmrc", "a=1\na=2\n", "a=3"));
  assertRefuses("unparsable_content", () => edited("generic", "", "[a]\nx = 3\nx = 4"));
  assert.equal(edited("generic", "[a]\nx = 1\nx = 2\n", "[a]\ny = 3"), "[a]\nx = 1\nx = 2\ny = 3\n");
});

test("ini parse: malformed input is refused and not quoted", () => {
  const table: [IniDialect, string][] = [
    ["generic", "hunter2"],
    ["generic", "[hunter2"],
    ["generic", "[a] hunter2"],
    ["generic", "= hunter2"],
    ["gitconfig", '[a]\nx = "hunter2'],
    ["gitconfig", "[a]\nx = \\hunter2"],
    ["gitconfig", "[a]\nhunter 2 = x"],
    ["gitconfig", "[a hunter2]\nx = 1"],
  ];
  for (const [dialect, text] of table) {
    const format = documentFormat("ini", { dialect });
    assertRefuses("unparsable_content", () => format.parse(text), ["hunter2"]);
    assertRefuses("unparsable_existing", () => format.edit(text, new Map()), ["hunter2"]);
  }
});

test("iniDialectOf: finds the dialect by the path [agent 14.17]", () => {
  const table: Record<string, IniDialect> = {
    "/home/me/.npmrc": "npmrc",
    "/etc/npmrc": "npmrc",
    "~/.gitconfig": "gitconfig",
    "~/.config/git/config": "gitconfig",
    "/x/.git/config": "gitconfig",
    "~/.config/pip/pip.conf": "pip",
    "C:\\Users\\me\\pip\\pip.ini": "pip",
    "~/.pypirc": "pip",
    "~/.aws/credentials": "aws",
    "~/.aws/config": "aws",
    "/x/config": "generic",
    "a.ini": "generic",
  };
  for (const [path, dialect] of Object.entries(table)) assert.equal(iniDialectOf(path), dialect, path);
});

test("ini mask: values and comments are masked, sections and keys stay", () => {
  assert.equal(
    documentFormat("ini").mask("# hunter1\n[a]\nx = hunter2 ; old\ny =\n  hunter3\n  hunter4\n"),
    "••••\n[a]\nx = •••• ••••\ny =\n  ••••\n  ••••\n",
  );
});

test("ini mask: a comment inside a value of several lines is masked with it", () => {
  const setup = "[options]\ninstall_requires =\n    one\n    # why two\n    two\n[other]\na = b\n";
  assert.equal(
    documentFormat("ini").mask(setup),
    "[options]\ninstall_requires =\n    ••••\n    ••••\n    ••••\n[other]\na = ••••\n",
  );
});

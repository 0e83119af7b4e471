import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { DocumentEditError, documentFormat } from "../index.ts";
import { assertAddRemove, assertEdits, type EntriesCase } from "../../test/entries.test-kit.ts";
import { corpus, edit, assertRefuses } from "../../test/editing.test-kit.ts";

const folder = mkdtempSync(join(tmpdir(), "ssh-config-"));
after(() => rmSync(folder, { recursive: true }));
const file = join(folder, "config");

const sshConfig = documentFormat("ssh_config");

/** Values of the installed OpenSSH for a host in the file: keyword in lower case → value. */
function openssh(text: string, host: string): Map<string, string> {
  writeFileSync(file, text);
  const { stdout, stderr, status } = spawnSync("ssh", ["-G", "-F", file, host], { encoding: "utf8" });
  assert.equal(status, 0, `ssh -G failed (is openssh-client installed?): ${stderr}`);
  const found = new Map<string, string>();
  for (const line of stdout.split("\n")) {
    const [, key = "", value = ""] = /^(\S+) (.*)$/.exec(line) ?? [];
    if (!found.has(key)) found.set(key, value);
  }
  return found;
}

const KEYWORDS = ["User", "HostName", "HostKeyAlias", "ControlPath"];

const CASE: EntriesCase = {
  format: "ssh_config",
  sections: fc.stringMatching(/^Host [a-z]{2,5}$/),
  hasTop: false,
  key: fc.constantFrom(...KEYWORDS),
  value: fc.oneof(fc.stringMatching(/^[a-z][a-z0-9.]{0,8}$/), fc.constantFrom('"in.quotes"', "x#y")),
  write(key, value, choices) {
    const indent = choices.pick(["  ", "\t", ""]);
    return `${indent}${choices.pick([key, key.toLowerCase(), key.toUpperCase()])}${choices.pick([" ", "=", " = ", "\t"])}${value}${choices.pick(["", "  "])}`;
  },
  header: (name, choices) =>
    choices.chance(50) ? name : name.replace("Host ", choices.pick(["host  ", "HOST=", "Host = "])),
  comments: ["# Host evil", "  # User x", ""],
  read(text) {
    const found = new Map<string, string>();
    const blocks = text.split(/^(?=[ \t]*host\b)/im).filter((block) => /^[ \t]*host\b/i.test(block));
    for (const block of blocks) {
      const host = /^[ \t]*host[ \t]*=?[ \t]*(\S+)/i.exec(block)?.[1] ?? "";
      const effective = openssh(text, host);
      for (const key of KEYWORDS) {
        if (!new RegExp(`^[ \\t]*${key}\\b`, "im").test(block)) continue;
        const value = effective.get(key.toLowerCase()) ?? "";
        found.set(`Host ${host}\0${key}`, value === "in.quotes" ? '"in.quotes"' : value);
      }
    }
    return found;
  },
  runs: 8,
};

test("ssh_config edit: ssh -G reads the merged values of any file, other lines stay [agent 14.6]", () => {
  assertEdits(CASE);
});

test("ssh_config edit: adding blocks and removing them again gives the old text", () => {
  assertAddRemove({ ...CASE, runs: 80 });
});

test("ssh_config edit: a new block is before the first block that matches all hosts [agent 14.19]", () => {
  const before = corpus("ssh_config");
  const result = edit(
    "ssh_config",
    before,
    "Host build *.build.example.org\n  HostName build2.example.org\n  Port 2222\nHost new\n  User me\n  IdentityFile ~/.ssh/a\n  IdentityFile ~/.ssh/b\n",
  );
  assert.equal(
    result,
    before
      .replace("HostName=build.example.org", "HostName=build2.example.org")
      .replace("IdentityFile ~/.ssh/build\n", "IdentityFile ~/.ssh/build\n\tPort=2222\n")
      .replace(
        "# for everything else\n",
        "Host new\n\tUser me\n\tIdentityFile ~/.ssh/a\n\tIdentityFile ~/.ssh/b\n\n# for everything else\n",
      ),
  );
  assert.equal(openssh(result, "new").get("user"), "me");
  assert.equal(openssh(result, "x.build.example.org").get("port"), "2222");
  assert.equal(openssh(result, "other").get("user"), "everybody");
});

test("ssh_config edit: a block is identified by its exact criteria [agent 14.19]", () => {
  const before = "host=a\n  User y\nHost a b\n  User x\n";
  assert.equal(edit("ssh_config", before, "Host a\n  User z"), "host=a\n  User z\nHost a b\n  User x\n");
  assert.equal(
    edit("ssh_config", "Host  a \t b # two\n  User x\n", "Host a b\n  User z"),
    "Host  a \t b # two\n  User z\n",
  );
  assert.equal(
    edit(
      "ssh_config",
      'Match host x exec "test  -f #y"\n  User a\n',
      'Match host x exec "test  -f #y"\n  User b',
    ),
    'Match host x exec "test  -f #y"\n  User b\n',
  );
});

test("ssh_config edit: options above the first block, and lists", () => {
  assert.equal(
    edit("ssh_config", "# top\n\nHost a\n  User x\n", "Compression yes"),
    "# top\n\nCompression yes\n\nHost a\n  User x\n",
  );
  assert.equal(
    edit("ssh_config", "identityfile ~/a\nIdentityFile ~/b # two\nPort 1\n", "IdentityFile ~/c\nPort 2"),
    "identityfile ~/c\n# two\nPort 2\n",
  );
  assert.equal(
    edit("ssh_config", undefined, "Host a\n  ProxyCommand ssh -W %h:%p j # all\n"),
    "Host a\n    ProxyCommand ssh -W %h:%p j # all\n",
  );
});

test("ssh_config remove: removes an empty block, keeps comments and other options", () => {
  assert.equal(
    edit("ssh_config", "Host a\n  User x # me\n\nHost b\n  User y\n  Port 1\n", "", {
      remove: [
        ["Host a", "User"],
        ["Host b", "Port"],
      ],
    }),
    "# me\n\nHost b\n  User y\n".replace("# me", "  # me"),
  );
});

test("ssh_config edit: invalid values and criteria are refused and not quoted", () => {
  for (const value of [
    "hunter2\nProxyCommand evil",
    "\rhunter2",
    "hunter2\0",
    " hunter2",
    "hunter2 # x",
    '"hunter2',
    "",
  ]) {
    assertRefuses(
      "unsafe_value",
      () => edit("ssh_config", "", new Map([["Host a", new Map([["User", value]])]])),
      ["hunter2"],
    );
  }
  for (const name of ["Host a\nHost *", "a", "Host", "Host  a", "Match"]) {
    assertRefuses("unsafe_value", () => edit("ssh_config", "", new Map([[name, new Map([["User", "x"]])]])));
  }
  assertRefuses("unsafe_value", () =>
    edit("ssh_config", "", new Map([["Host a", new Map([["User x\nHost", "y"]])]])),
  );
  assertRefuses("unsupported", () =>
    edit("ssh_config", "Host a\n User x\nHost a\n User y\n", "Host a\n User z"),
  );
  assertRefuses("unsupported", () => edit("ssh_config", "Host a\n User x\n User y\n", "Host a\n User z"));
});

test("ssh_config parse: malformed input is refused and not quoted", () => {
  for (const text of ["hunter2", 'User "hunter2', "- hunter2"]) {
    assertRefuses("unparsable_content", () => sshConfig.parse(text), ["hunter2"]);
    assertRefuses("unparsable_existing", () => edit("ssh_config", text, "User x"), ["hunter2"]);
  }
});

test("ssh_config mask: values and comments are masked, criteria and keywords stay", () => {
  assert.equal(
    sshConfig.mask("# hunter1\nHost a *.b # c\n\tUser=me # x\n\tProxyCommand run hunter2 # y\n"),
    "••••\nHost a *.b ••••\n\tUser=•••• ••••\n\tProxyCommand ••••\n",
  );
});

test("ssh_config edit: refuses a value with an open quote or an empty argument", () => {
  for (const value of ["it's", 'a"b', '""', "''", "a '' b"]) {
    assertRefuses("unsafe_value", () =>
      edit("ssh_config", "", new Map([["Host a", new Map([["User", value]])]])),
    );
  }
  const found = edit("ssh_config", "", new Map([["Host a", new Map([["User", '"it\'s \\"x\\""']])]]));
  assert.equal(openssh(found, "a").get("user"), 'it\'s "x"');
});

/** Files that set a value before the block of the rule `Host h`, and the line that ssh uses. */
const EARLIER: readonly (readonly [name: string, before: string, line: number])[] = [
  ["a line above all blocks", "User top\nHost *\n Port 1\n", 1],
  ["a line above its block", "User top\n\nHost h\n User old\n", 1],
  ["Match all above its block", "Match ALL\n User s\nHost h\n User old\n", 2],
  ["Host * above its block", 'Host "*"\n User s\nHost h\n User old\n', 2],
  ["a block with another host", "# x\nHost h x\n User a\n", 3],
  ["a pattern of one character", "Host ?\n User a\nHost h\n", 2],
  ["a negated pattern of another host", "Host !x h*\n User a\n", 2],
  ["Match host", "Match host h\n User s\n", 2],
  ["Match host in another form", "Match Host=x,H\n User s\n", 2],
  ["Match originalhost", "Match originalhost h !host x\n User s\n", 2],
  [
    "Match host of a HostName",
    "Host h\n HostName %h.test\nMatch host h.test\n User s\nHost h y\n User o\n",
    4,
  ],
];

for (const [name, before, line] of EARLIER) {
  test(`ssh_config edit: a value after ${name} is refused, as ssh -G uses the other [agent 14.20]`, () => {
    const block = name.includes("HostName") ? "Host h y" : "Host h";
    // The result of a writer that only reads the block.
    const naive = before.includes(`${block}\n User`)
      ? before.replace(/ User (?:old|o)\n/, " User new\n")
      : `${before}${block}\n User new\n`;
    assert.notEqual(openssh(naive, "h").get("user"), "new");
    assert.throws(
      () => edit("ssh_config", before, `${block}\n User new\n`),
      (error) => {
        assert.ok(error instanceof DocumentEditError);
        assert.deepEqual([error.code, error.line], ["unsupported", line], error.message);
        assert.match(error.message, /User in the block "Host h( y)?": move the line/);
        return true;
      },
    );
  });
}

test("ssh_config edit: a value is written if no earlier line certainly sets another [agent 14.20]", () => {
  for (const before of [
    "User new\nHost x\n User a\n",
    "Host x\n User a\n",
    "Host * !h\n User a\nHost h\n User old\n",
    "Host H\n User a\n",
    "Match !host h\n User a\n",
    "Match !all\n User a\n",
    'Match host h exec "false"\n User a\n',
    "Match final host h\n User a\n",
    "Match host h\n Port 1\n",
    "Host h\n User old\nHost h x\n User a\n",
    "Host h\n HostName real.test\nMatch host h\n User a\n",
    "Host *\n User a\n",
  ]) {
    assert.equal(openssh(edit("ssh_config", before, "Host h\n User new\n"), "h").get("user"), "new", before);
  }
});

test("ssh_config edit: list keywords do not conflict, exclusive keywords do [agent 14.20]", () => {
  const adds = edit("ssh_config", "IdentityFile ~/a\nSendEnv A\n", "Host h\n IdentityFile ~/b\n SendEnv B\n");
  assert.match(adds, /IdentityFile ~\/b/);
  for (const [before, content] of [
    ["ProxyJump j\n", "Host h\n ProxyCommand x\n"],
    ["Host h\n ProxyJump j\n", "Host h\n ProxyCommand x\n"],
    ["SetEnv A=1\n", "Host h\n SetEnv B=2\n"],
    ["PubkeyAcceptedKeyTypes ssh-ed25519\n", "Host h\n PubkeyAcceptedAlgorithms rsa-sha2-512\n"],
    ["User top\n", "Host *\n User new\n"],
    ["Host *.a\n User top\n", "Host *.b.a\n User new\n"],
    ["Host *\n User old\nHost h\n User old\n", "Host h\n User new\nHost *\n User other\n"],
  ] as const) {
    assertRefuses("unsupported", () => edit("ssh_config", before, content));
  }
  // The order of the content has a meaning: an exception before a pattern stays.
  edit(
    "ssh_config",
    "Host x\n User root\n",
    "User top\nHost h\n User a\nHost h y\n User b\nHost *\n User c\n",
  );
});

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { git, temporaryFolder, tryGit } from "../../test/git.test-kit.ts";
import { formatConfig, parseConfig } from "./config-file.ts";
import { formatPackedRefs, parsePackedRefs } from "./packed-refs.ts";
import { isRefName } from "./ref-name.ts";

test("parseConfig reads what git config reads", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "config");
  const text = [
    "# comment",
    "[core] bare = true ; why",
    "\trepositoryFormatVersion = 0",
    '[remote "a \\"b\\" \\\\c"]',
    "  url = https://example.org/x.git # no",
    '  Fetch = "+refs/heads/*:refs/heads/*" ',
    "  flag",
    "[a.B]",
    "long = one \\",
    '  two "three # four"  ',
    'escaped = "tab\\tend\\\\"',
    "empty =",
    "twice = 1",
    "twice = 2",
    "",
  ].join("\n");
  writeFileSync(file, text);
  const expected = new Map<string, string>();
  for (const record of git(folder.path, ["config", "--file", file, "--list", "--null"])
    .toString()
    .split("\0")) {
    if (record === "") continue;
    const end = record.indexOf("\n");
    expected.set(end < 0 ? record : record.slice(0, end), end < 0 ? "true" : record.slice(end + 1));
  }
  assert.deepEqual(parseConfig(text), expected);
});

test("parseConfig gives back what formatConfig wrote, and git reads the same", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "config");
  const value = fc.string({ unit: fc.constantFrom(...Array.from("ab \t\n\"\\#;=[]'é")) });
  const subsection = fc.string({ minLength: 1, unit: fc.constantFrom(...Array.from('ab ."\\]/:')) });
  fc.assert(
    fc.property(value, value, subsection, (first, second, name) => {
      const values = new Map([
        ["core.a", first],
        [`svc.${name}.b`, second],
        ["core.c", ""],
      ]);
      const text = formatConfig(values);
      assert.deepEqual(parseConfig(text), values);
      writeFileSync(file, text);
      assert.equal(git(folder.path, ["config", "--file", file, "core.a"]).toString(), `${first}\n`);
      assert.equal(git(folder.path, ["config", "--file", file, `svc.${name}.b`]).toString(), `${second}\n`);
    }),
    { numRuns: 12 },
  );
});

test("parsePackedRefs gives back what formatPackedRefs wrote, sorted", () => {
  const oid = fc.string({
    minLength: 40,
    maxLength: 40,
    unit: fc.constantFrom(...Array.from("0123456789abcdef")),
  });
  const name = fc
    .array(fc.constantFrom("a", "b", "zz", "é", "😀", "-", "x@y", "%41"), { minLength: 1, maxLength: 3 })
    .map((parts) => `refs/heads/${parts.join("/")}`);
  const ref = fc.record({ name, oid, peeled: oid }, { requiredKeys: ["name", "oid"] });
  fc.assert(
    fc.property(fc.uniqueArray(ref, { selector: (r) => r.name }), (refs) => {
      const read = parsePackedRefs(formatPackedRefs(refs, "sha1"), "sha1");
      const sorted = refs.toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
      assert.deepEqual(
        read,
        sorted.map((r) => ({ ...r })),
      );
    }),
  );
});

for (const text of [
  "garbage\n",
  `^${"1".repeat(40)}\n`,
  `${"1".repeat(40)} ../x\n`,
  `${"1".repeat(39)} refs/heads/x\n`,
]) {
  test(`parsePackedRefs of ${JSON.stringify(text)} throws corrupt_repository`, () => {
    assert.throws(() => parsePackedRefs(text, "sha1"), { code: "corrupt_repository" });
  });
}

test("isRefName agrees with git check-ref-format", () => {
  using folder = temporaryFolder();
  const names = [
    "refs/heads/main",
    "refs/heads/a/b-c_d.e",
    "refs/heads/@",
    "refs/heads/a@b",
    "refs/heads/ä",
    "refs/x",
    "refs/heads/-x",
    "refs/heads/.x",
    "refs/heads/x.",
    "refs/heads/x.lock",
    "refs/heads/x.lock/y",
    "refs/heads/a..b",
    "refs/heads/a//b",
    "refs/heads/",
    "refs/heads/a b",
    "refs/heads/a~1",
    "refs/heads/a^",
    "refs/heads/a:b",
    "refs/heads/a?",
    "refs/heads/a*",
    "refs/heads/a[b",
    "refs/heads/a\\b",
    "refs/heads/a@{b",
    "refs/heads/a\u007f",
    "refs/heads/a\tb",
    "refs/heads/x.locks",
    "refs/heads/a/.b",
    "refs/heads/{a}",
    "refs/heads/a}b",
    "refs/heads/a]b",
    "refs/heads/a./b",
  ];
  for (const name of names) {
    assert.equal(isRefName(name), tryGit(folder.path, ["check-ref-format", name]).status === 0, name);
  }
  assert.equal(isRefName("main"), false);
});

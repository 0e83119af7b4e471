import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseConfig } from "./load.ts";
import { parseRemote } from "./overlay.ts";
import { secretsWithNamesOf } from "./sections/mounted-file.ts";

function faults(text: string): string[] {
  try {
    parseConfig({ path: "c.yaml", text });
    return [];
  } catch (error) {
    assert.ok(error instanceof Error);
    return error.message.split("\n").map((line) => line.replace(/^c\.yaml:\d+:\d+: /, ""));
  }
}

/** A configuration with these rules, each a name, a key and a target in YAML. */
const config = (rules: readonly [name: string, key: string, target: string][], more = ""): string =>
  `store: {driver: embedded}
${more}
rules:
${rules.map(([name, key, target]) => `  - {name: ${name}, key: ${key}, target: {${target}}}`).join("\n")}
`;
const one = (target: string, more = ""): string[] =>
  faults(config([["a", "demo/k", `format: yaml, ${target}`]], more));

describe("target.mount", () => {
  const good = [".env", "app/.env", "app/deep/er/config.json", "a b/ü/x", "x.d/y", "n".repeat(255)];
  for (const path of good)
    it(`takes ${JSON.stringify(path.slice(0, 30))}`, () => {
      assert.deepEqual(one(`mount: "${path}"`), []);
    });

  const bad: [path: string, message: RegExp][] = [
    ["", /expected a path below the mountpoint/],
    ["/etc/passwd", /expected a path below the mountpoint/],
    ["~/x", /expected a path below the mountpoint/],
    ["../x", /empty, \. or \.\. segments/],
    ["a/../../x", /empty, \. or \.\. segments/],
    ["./x", /empty, \. or \.\. segments/],
    ["a//x", /empty, \. or \.\. segments/],
    ["a/..", /empty, \. or \.\. segments/],
    ["a/", /must name a file, not a folder/],
    ["a\\0b", /control characters/],
    ["a\\nb", /control characters/],
    ["a\\e[2Jb", /control characters/],
    [`a/${"n".repeat(256)}`, /each name must not be longer than 255 bytes/],
    ["ü".repeat(128), /each name must not be longer than 255 bytes/],
    [`${"a/".repeat(1600)}x`, /must not be longer than 3000 bytes/],
  ];
  for (const [path, message] of bad)
    it(`refuses ${JSON.stringify(path.slice(0, 30))}`, () => {
      assert.match(one(`mount: "${path}"`).join(), message);
    });

  it("excludes path, and keys that only files on disk have", () => {
    assert.deepEqual(one("path: ~/x, mount: x"), ["rules[0].target.mount: give only one of path and mount"]);
    assert.deepEqual(faults(config([["a", "k", "format: yaml"]])), [
      "rules[0].target: one of path and mount is required",
    ]);
    for (const key of [
      'mode: "0644"',
      'dir_mode: "0755"',
      "on_missing: remove",
      "on_remove: clean",
      "overwrite: true",
      "tighten: false",
      "allow_tracked: true",
    ])
      assert.match(one(`mount: x, ${key}`).join(), /only for a file on disk \(target\.path\)/, key);
    assert.deepEqual(one('mount: x, mode: "0600", on_missing: error'), []);
  });

  it("has base and allow, which files on disk have not", () => {
    assert.deepEqual(one("mount: x, base: ~/.kube/config, allow: [/usr/bin/python3, ~/bin/app]"), []);
    assert.match(one("path: ~/x, base: ~/y").join(), /target\.base: only for a file on the mount/);
    assert.match(one("path: ~/x, allow: [/bin/cat]").join(), /target\.allow: only for a file on the mount/);
    assert.match(
      one("mount: x, allow: [cat]").join(),
      /target\.allow\[0\]: expected ~\/… or an absolute path/,
    );
    assert.match(one("mount: x, allow: []").join(), /target\.allow/);
    const text = faults(config([["a", "k", "mount: x, format: text, template: x, base: ~/y"]]));
    assert.match(text.join(), /target\.base: the format text replaces the whole file/);
  });

  it("refuses a base file and programs on the mount itself", () => {
    assert.match(one("mount: x, base: ~/.daemon/y").join(), /target\.base: must not be on the mount itself/);
    assert.match(one("mount: x, allow: [~/.daemon/y]").join(), /target\.allow: a program must not be/);
    assert.deepEqual(one("mount: x, base: ~/.daemon/y", "fuse: {mountpoint: ~/other}"), []);
    assert.match(one("mount: x, base: ~/other/y", "fuse: {mountpoint: ~/other}").join(), /must not be on/);
  });

  it("refuses a name that another rule or a secret of the configuration has", () => {
    const two = (mount: string, other: string): string =>
      faults(
        config([
          ["a", "k", `mount: ${mount}, format: yaml`],
          ["b", "k", `mount: ${other}, format: yaml`],
        ]),
      ).join();
    assert.match(two("x/y", "x/y"), /rule 'a' has the file x\/y/);
    assert.match(two("x/y", "x/y/z"), /rule 'a' has the file x\/y/);
    assert.match(two("x/y/z", "x/y"), /rule 'a' has the file x\/y\/z/);
    assert.equal(two("x/y", "x/yz"), "");
    assert.match(one("mount: demo/k.json").join(), /the secret demo\/k has this name on the mount/);
    assert.match(one("mount: demo/k.json/x").join(), /the secret demo\/k has this name on the mount/);
    assert.deepEqual(one("mount: demo/k.d/x"), []);
    assert.match(one("mount: demo/k.d/x", "fuse: {layout: both}").join(), /the secret demo\/k has this name/);
    assert.match(one("mount: demo").join(), /the secret demo\/k needs a folder of this name/);
    const enrolment = "enrolments: {tools/hub: {engine: github, client_id: abc}}";
    assert.match(one("mount: tools/hub.json", enrolment).join(), /the secret tools\/hub has this name/);
  });

  it("needs trust: full in a remote document, as base does", () => {
    const text = "rules: [{name: a, key: k, target: {mount: x, base: ~/.kube/config, format: yaml}}]";
    assert.throws(
      () => parseRemote("https://c.example", text, "rules"),
      /rules\[0\]\.target\.mount: needs remote_config\.trust: full[^]*rules\[0\]\.target\.base: needs remote_config\.trust: full/,
    );
    assert.equal(parseRemote("https://c.example", text, "full").rules.length, 1);
  });
});

describe("secretsWithNamesOf", () => {
  it("finds the secrets whose files have a name of the path", () => {
    assert.deepEqual(secretsWithNamesOf("a/b.json", "json"), ["a/b"]);
    assert.deepEqual(secretsWithNamesOf("a.json/b.json", "json"), ["a", "a.json/b"]);
    assert.deepEqual(secretsWithNamesOf("a.d/b.d/c", "json"), []);
    assert.deepEqual(secretsWithNamesOf("a.d/b.json", "both"), ["a", "a.d/b"]);
    assert.deepEqual(secretsWithNamesOf(".json", "both"), []);
  });
});

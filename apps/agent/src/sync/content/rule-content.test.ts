import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { documentFormat, type EditMap, type EditValue, type FormatName } from "@devplat/document-edit";
import type { FieldValue } from "@devplat/secret-store";
import { workspace, type Workspace } from "../workspace.test-kit.ts";
import { publicMessage } from "../../errors.ts";
import { RETRY_ALL, RETRY_NONE } from "../retry-scope.ts";

let w: Workspace;
beforeEach(async () => {
  w = await workspace();
});
afterEach(() => w.remove());

const never = new AbortController().signal;

/** Syncs one rule; gives the file's content, or the rule's error. */
async function synced(
  fields: Record<string, FieldValue>,
  target: { format: string; template: string; dialect?: string },
  environment: NodeJS.ProcessEnv = {},
): Promise<string> {
  await w.put("k", fields);
  const rules = [{ name: "a", key: "k", target: { path: "~/f", ...target } }];
  const { engine, state } = await w.engine(rules, { environment });
  await engine.cycle(never, { retry: RETRY_ALL });
  const record = state.document.rules["a"];
  return record?.state === "ok" ? w.read("f") : `${record?.state}: ${record?.error}`;
}

describe("a rule's template", () => {
  it("renders fields into the document [agent 15.3]", async () => {
    const template = "a:\n  token: {{ .token }}\n  port: {{ .port }}\n";
    const found = await synced({ token: "t", port: { number: "443" } }, { format: "yaml", template });
    assert.equal(found, "a:\n  token: t\n  port: 443\n");
  });

  it("fails on a missing key and names line and column", async () => {
    assert.match(
      await synced({ a: "1" }, { format: "yaml", template: "x: 1\ny: {{ .b }}\n" }),
      /^failed: a:2:\d+: /,
    );
  });

  it("fails on a template that does not parse and names line and column", async () => {
    assert.match(
      await synced({ a: "1" }, { format: "yaml", template: "x: {{ if }}\n" }),
      /^failed: a:1:\d+: /,
    );
  });

  it("reads another secret by secret, and follows its versions [agent 15.8]", async () => {
    await w.put("other/one", { token: "1st" });
    const target = { format: "text", template: '{{ (secret "other/one").token }}/{{ .a }}' };
    assert.equal(await synced({ a: "x" }, target), "1st/x");
    await w.put("other/one", { token: "2nd" });
    const rules = [{ name: "a", key: "k", target: { path: "~/f", ...target } }];
    const { engine } = await w.engine(rules);
    await engine.cycle(never, { retry: RETRY_NONE });
    assert.equal(await w.read("f"), "2nd/x");
    assert.deepEqual((await engine.cycle(never, { retry: RETRY_NONE })).unchanged, ["a"]);
  });

  it("is missing when a secret that it asks for is missing", async () => {
    const template = '{{ (secret "other/none").token }}';
    assert.equal(
      await synced({ a: "x" }, { format: "text", template }),
      "missing: nothing is stored under other/none",
    );
  });

  it("reads the environment, follows its changes, and never the daemon's own variables [agent 15.9]", async () => {
    const target = { format: "text", template: '{{ env "WHO" }}' };
    assert.equal(await synced({ a: "x" }, target, { WHO: "me" }), "me");
    const rules = [{ name: "a", key: "k", target: { path: "~/f", ...target } }];
    const { engine } = await w.engine(rules, { environment: { WHO: "you" } });
    await engine.cycle(never, { retry: RETRY_NONE });
    assert.equal(await w.read("f"), "you");
    const refused = await synced(
      { a: "x" },
      { format: "text", template: '{{ env "AGENT_TOKEN" }}' },
      { AGENT_TOKEN: "hunter2" },
    );
    assert.match(refused, /^failed: .*AGENT_/);
    assert.doesNotMatch(refused, /hunter2/);
  });

  it("gives the user's name", async () => {
    assert.equal(await synced({ a: "x" }, { format: "text", template: "{{ username }}" }), "tester");
  });
});

describe("every format", () => {
  const table: [string, string, string, string][] = [
    ["ini", "; c\n[s]\na = 1\n", "[s]\na = {{ .v }}\n", "; c\n[s]\na = new\n"],
    ["toml", "# c\n[s]\na = '1' # d\n", "[s]\na = {{ .v | quote }}\n", "# c\n[s]\na = 'new' # d\n"],
    [
      "ssh_config",
      "# c\nHost *\n  User x\n",
      "Host h\n  User {{ .v }}\n",
      "Host h\n  User new\n\n# c\nHost *\n  User x\n",
    ],
    ["dotenv", "# c\nexport A='1'\n", "A={{ .v }}\n", "# c\nexport A='new'\n"],
    ["properties", "# c\na : 1\n", "a={{ .v }}\n", "# c\na : new\n"],
    [
      "netrc",
      "# c\nmachine h login l password old\n",
      "machine h login l password {{ .v }}\n",
      "# c\nmachine h login l password new\n",
    ],
    ["json", '{"a": 1, // c\n "b": 2}\n', '{"a": {{ .v | quote }}}', '{"a": "new", // c\n "b": 2}\n'],
  ];
  for (const [format, existing, template, expected] of table) {
    it(`${format}: changes only the managed bytes`, async () => {
      await w.file("f", existing);
      assert.equal(await synced({ v: "new" }, { format, template }), expected);
    });
  }

  it("the flavour of ini is told by the file's name", async () => {
    await w.put("k", { token: "new" });
    await w.file(".npmrc", "//registry.example/:_authToken=old\n");
    const template = "//registry.example/:_authToken={{ .token }}\n";
    const { engine } = await w.engine([
      { name: "a", key: "k", target: { path: "~/.npmrc", format: "ini", template } },
    ]);
    assert.deepEqual((await engine.cycle(never, { retry: RETRY_NONE })).changed, ["a"]);
    assert.equal(await w.read(".npmrc"), "//registry.example/:_authToken=new\n");
  });
});

/** The names and values of a document in order. */
function texts(value: EditValue): string[] {
  if (value instanceof Map) return [...(value as EditMap)].flatMap(([key, inner]) => [key, ...texts(inner)]);
  return Array.isArray(value)
    ? value.flatMap((item: EditValue) => texts(item))
    : [typeof value === "string" ? value : JSON.stringify(value)];
}

describe("a value cannot become structure [agent 15.10]", () => {
  const hostile: [string, string, string, string][] = [
    ["a new key in yaml", "yaml", "a:\n  t: {{ .v }}\n", "x\n  admin: true"],
    ["a mapping in yaml", "yaml", "t: {{ .v }}\n", "{admin: true}"],
    ["a list in yaml", "yaml", "t: {{ .v }}\n", "[1, 2]"],
    ["a key of yaml", "yaml", "{{ .v }}: 1\n", "admin"],
    ["a quote's end in yaml", "yaml", 't: "{{ .v }}"\n', 'x"\nadmin: "1'],
    ["a quote's end in json", "json", '{"t": "{{ .v }}"}', 'x", "admin": "1'],
    ["an object in json", "json", '{"t": {{ .v }}}', '{"admin": true}'],
    [
      "a line in netrc",
      "netrc",
      "machine h login l password {{ .v }}\n",
      "x\nmachine evil login m password p",
    ],
    ["a line in ini", "ini", "[s]\na = {{ .v }}\n", "x\nadmin = 1"],
    ["a line in ssh_config", "ssh_config", "Host h\n  User {{ .v }}\n", "x\n  ProxyCommand evil"],
    ["a line in dotenv", "dotenv", "A={{ .v }}\n", "x\nadmin=1"],
    ["a NUL in dotenv", "dotenv", "A={{ .v }}\n", "x\0admin"],
    ["a line in properties", "properties", "a={{ .v }}\n", "x\nadmin=1"],
    ["a table in toml", "toml", "a = {{ .v }}\n", "1\n[admin]\nb = 1"],
    ["an inline table in toml", "toml", "a = {{ .v }}\n", "{admin = 1}"],
    ["a carriage return in netrc", "netrc", "machine h login l password {{ .v }}\n", "x\rmachine"],
  ];
  for (const [name, format, template, value] of hostile) {
    it(name, async () => {
      const found = await synced({ v: value }, { format, template });
      assert.match(found, /^failed: template( line \d+)?: the value /, found);
      assert.doesNotMatch(found, /admin|evil/);
      await assert.rejects(w.read("f"), { code: "ENOENT" });
    });
  }

  // The keys stay as they are: a value ends its quotes, and hides the rest.
  const hidden: [string, string, string, Record<string, string>][] = [
    ["a comment of json", "json", '{"t": "{{ .v }}", "role": "user"}', { v: 'x", "role": "admin"} //' }],
    ["a comment of yaml", "yaml", "{t: {{ .v }}, role: user}", { v: "x, role: admin} #" }],
    ["a comment of toml", "toml", 'a = {t = "{{ .v }}", role = "user"}\n', { v: 'x", role = "admin"} #' }],
    [
      "two values as quotes of yaml",
      "yaml",
      "{t: {{ .v }}, role: user, z: {{ .w }}}",
      { v: '1, role: admin, z: "', w: '"' },
    ],
    [
      "two values as a comment of json",
      "json",
      '{"t": "{{ .v }}", "role": "user", "z": "{{ .w }}"}',
      { v: '1", "role": "admin", /*', w: '*/ "z": "' },
    ],
    [
      "a third value of yaml",
      "yaml",
      "{t: {{ .v }}, role: {{ .x }}, z: {{ .w }}}",
      { v: '1, role: admin, z: "', x: "a:b", w: '"' },
    ],
    [
      "blanks in netrc",
      "netrc",
      "machine h login {{ .v }} password {{ .w }}\n",
      { v: "u password p machine evil login m", w: "x" },
    ],
    [
      "blanks of a known field in netrc",
      "netrc",
      "machine h login {{ .v }} password p\n",
      { v: "u account admin" },
    ],
    ["a backslash in gitconfig", "ini", "[s]\n\ta = {{ .v }}\n\trole = user\n", { v: "x\\" }],
    ["a backslash in properties", "properties", "a={{ .v }}\nrole=user\nz=1\n", { v: "x\\" }],
    ["two quotes in dotenv", "dotenv", "A={{ .v }}\nROLE=user\nZ={{ .w }}\n", { v: '"', w: '"' }],
  ];
  for (const [name, format, template, values] of hidden) {
    it(`nor hide what follows: ${name}`, async () => {
      const target = {
        format,
        template,
        ...(name.includes("gitconfig") && { dialect: "gitconfig" as const }),
      };
      const found = await synced(values, target);
      const marked = template.replace(/"?\{\{ \.(\w) \}\}"?/g, (print, field: string) =>
        print.startsWith('"') ? `"m-${field}"` : `m-${field}`,
      );
      const reader = documentFormat(format as FormatName, target);
      const expected = texts(reader.parse(marked)).map((text) => values[text.replace(/^m-/, "")] ?? text);
      assert.deepEqual(texts(reader.parse(found)), expected);
    });
  }

  it("accepts odd values that stay in their places, also as names in line formats", async () => {
    const odd = "it's ${HOME} `id` $(x) <y>; a\\b #c";
    const fields = { one: odd, two: "{[,]}", three: "a:b", four: "" };
    const each = Object.keys(fields).map((name) => `${name}: '{{ .${name} | replace "'" "''" }}'\n`);
    const yaml = await synced(fields, { format: "yaml", template: each.join("") });
    assert.match(yaml, /^two: .\{\[,\]\}.$/m, yaml);
    const names = { "//registry.example/:_authToken": "t:1", "@scope:registry": "https://r.example/?a=b" };
    const template = "{{ range $name, $value := . }}{{ $name }}={{ $value }}\n{{ end }}";
    const npmrc = await synced(names, { format: "ini", template, dialect: "npmrc" });
    assert.match(npmrc, /^@scope:registry=https:\/\/r\.example\/\?a=b$/m, npmrc);
  });

  it("names the line of the action at fault [agent 15.10]", async () => {
    const template = "a: {{ .ok }}\nb: {{ .v }}\nc: {{ .ok }}\n";
    assert.match(await synced({ ok: "1", v: "{x: 1}" }, { format: "yaml", template }), /template line 2:/);
  });

  it("unless it is quoted, then it is carried as it is [agent 15.10]", async () => {
    const value = 'x"\nadmin: true # $(touch /tmp/x) `id`';
    const found = await synced({ v: value }, { format: "json", template: '{"t": {{ .v | quote }}}' });
    assert.equal(JSON.parse(found).t, value);
    const yaml = await synced({ v: value }, { format: "yaml", template: "t: {{ .v | toJSON }}\n" });
    assert.ok(!/^admin/m.test(yaml), yaml);
  });

  it("and harmless values pass, multi-line blocks, numbers, nulls and flags too", async () => {
    const template =
      "url: https://{{ .host }}:{{ .port }}/\nflag: {{ .flag }}\nkey: |\n{{ .pem | indent 2 }}\nlist:\n{{- range .names }}\n  - {{ . }}\n{{- end }}\n";
    const fields = {
      host: "h",
      port: { number: "1" },
      flag: true,
      pem: "-----\nab\n-----\n",
      names: ["one", "two"],
    };
    const found = await synced(fields, { format: "yaml", template });
    assert.match(found, /^url: https:\/\/h:1\/$/m, found);
    assert.match(found, /- two/);
  });

  it("a text file takes line breaks: a key is made of lines", async () => {
    assert.equal(await synced({ v: "a\nb\n" }, { format: "text", template: "{{ .v }}" }), "a\nb\n");
  });
});

describe("a rule without a template", () => {
  it("refuses a field that some reader of the format would change, and names it", async () => {
    await w.put("k", { A: "x\\", B: "y" });
    const rules = [{ name: "a", key: "k", target: { path: "~/f", format: "dotenv" } }];
    const { engine, state } = await w.engine(rules);
    await engine.cycle(never, { retry: RETRY_ALL });
    assert.match(state.document.rules["a"]?.error ?? "", /^the field "A" ends with a backslash/);
  });
});

describe("a whole text file", () => {
  it("of another program is replaced only with overwrite: true, or when it is equal [agent 14.23]", async () => {
    const target = { format: "text", template: "{{ .v }}" };
    await w.file("f", "mine");
    assert.match(
      await synced({ v: "a" }, target),
      /^failed: the file exists and was not written by this rule/,
    );
    assert.match(
      await synced({ v: "a" }, target),
      /^failed: /,
      "the second try knows no more than the first",
    );
    assert.equal(await w.read("f"), "mine");
    assert.equal(await synced({ v: "mine" }, target), "mine");
    assert.equal(await synced({ v: "b" }, target), "b");
    await w.file("f", "mine again");
    const overwriting = { ...target, overwrite: true };
    assert.equal(await synced({ v: "c" }, overwriting), "c");
  });
});

describe("the shown text of an error", () => {
  it("is nothing of one that is not ours [agent 18.5]", () => {
    assert.equal(publicMessage(new TypeError("hunter2 is not a function")), "internal error (TypeError)");
  });
});

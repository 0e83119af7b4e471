import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FORMAT_NAMES } from "@devplat/document-edit";
import { locateIn } from "@devplat/config/document";
import { parseConfig } from "./load.ts";
import { parseRemote, withRemote } from "./overlay.ts";
import { templateFaults } from "./template-faults.ts";

const STORE = "store: {driver: embedded}\n";

function faults(text: string, remote?: string): string[] {
  const path = "c.yaml";
  const base = { config: parseConfig({ path, text }), locate: locateIn(path, text) };
  const located = remote === undefined ? base : withRemote(base, parseRemote("https://f/r", remote, "rules"));
  return templateFaults(located).map(
    ({ source, line, column, key, message }) => `${source}:${line}:${column}: ${key}: ${message}`,
  );
}

const rule = (template: string, more = ""): string =>
  `${STORE}rules:\n  - name: a\n    key: k\n    target:\n      path: ~/f\n      format: text\n${more}      template: |\n${template
    .split("\n")
    .map((line) => `        ${line}\n`)
    .join("")}`;

describe("the check of templates", () => {
  const table: [string, string, string][] = [
    [
      "an unknown function",
      "x\n{{ .a | qoute }}",
      'line 2, column 9 of the template: there is no function "qoute"',
    ],
    [
      "one that is never reached",
      "{{ if false }}{{ nope }}{{ end }}",
      'line 1, column 18 of the template: there is no function "nope"',
    ],
    ["an action without its end", "a\nb {{ .a", "line 3, column 1 of the template: the action does not end"],
    ["an if without its end", "{{ if .a }}x", "line 1, column 4 of the template: {{if}} has no {{end}}"],
    ["an end too many", "{{ end }}", "line 1, column 8 of the template: {{end}} without an opening action"],
    ["an undefined variable", "{{ $x }}", "line 1, column 4 of the template: undefined variable $x"],
    [
      "a text without its end",
      '{{ "a }}',
      "line 1, column 4 of the template: the text in quotes does not end",
    ],
    ["a comment without its end", "{{/* a }}", "line 1, column 3 of the template: the comment does not end"],
  ];
  for (const [name, template, message] of table) {
    it(`finds ${name} [agent 3.16]`, () => {
      assert.deepEqual(faults(rule(template)), [`c.yaml:8:7: rules.a.target.template: ${message}`]);
    });
  }

  for (const format of FORMAT_NAMES) {
    it(`looks at rules of the format ${format}, also paused and not enabled [agent 3.16]`, () => {
      for (const more of ["", ", paused: true", ", enabled: false"]) {
        const text = `${STORE}rules: [{name: a, key: k${more}, target: {path: ~/f, format: ${format}, template: "{{ x }}"}}]\n`;
        assert.match(faults(text).join(), /^c\.yaml:2:\d+: rules\.a\.target\.template: line 1, column 4 /);
      }
    });
  }

  it("looks at the fields of copies, which cannot read other secrets", () => {
    const text = `${STORE}enrolments:\n  a/b:\n    engine: copy\n    from: c\n    fields:\n      u: "{{ .u }}"\n      v: "{{ .v "\n      w: '{{ (secret "x").y }}'\n`;
    assert.deepEqual(faults(text), [
      "c.yaml:8:7: enrolments.a/b.fields.v: line 1, column 7 of the template: the action does not end",
      'c.yaml:9:7: enrolments.a/b.fields.w: line 1, column 5 of the template: there is no function "secret"',
    ]);
  });

  it("looks at the principals of SSH certificates, which come from no secret", () => {
    const text = `${STORE}agent:\n  keys:\n    - {source: enrolments}\n    - source: ca\n      name: a\n      role: r\n      principals: ["{{ username }}", '{{ (secret "x").y }}', "{{ nope }}"]\n`;
    assert.deepEqual(faults(text), [
      'c.yaml:8:38: agent.keys.a.principals[1]: line 1, column 5 of the template: there is no function "secret"',
      'c.yaml:8:62: agent.keys.a.principals[2]: line 1, column 4 of the template: there is no function "nope"',
    ]);
  });

  it("names the line in the document of remote_config, or in the file", () => {
    const local = `${STORE}rules:\n  - {name: a, key: k, target: {path: ~/a, format: text, template: "{{ a }}"}}\n  - {name: b, key: k, target: {path: ~/b, format: text, template: "{{ b }}"}}\n`;
    const remote = `# fleet\nrules:\n  - {name: a, key: k, target: {path: ~/a, format: text, template: "{{ c }}"}}\n`;
    assert.deepEqual(
      faults(local, remote).map((fault) => fault.replace(/: line.*function/, "")),
      ['c.yaml:4:57: rules.b.target.template "b"', 'https://f/r:3:57: rules.a.target.template "c"'],
    );
  });

  it("takes every function, and templates that are defined", () => {
    const template =
      '{{ define "x" }}{{ . | quote | raw }}{{ end }}{{ template "x" .a }}{{ (secret "y").z | default "" }}';
    assert.deepEqual(faults(rule(template)), []);
  });

  it("never quotes a template", () => {
    assert.doesNotMatch(faults(rule('hunter2 {{ "hunter2 }}')).join(), /hunter2/);
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ValueContext } from "./evaluate.ts";
import { DATA, functions } from "./template.test-kit.ts";
import { parseTemplate } from "./template.ts";

describe("ExecuteOptions.onValue", () => {
  function trace(text: string, data = DATA): { output: string; seen: [string, ValueContext][] } {
    const seen: [string, ValueContext][] = [];
    const onValue = (value: string, context: ValueContext): string => {
      seen.push([value, context]);
      return value;
    };
    return { output: parseTemplate("rule", text).execute(data, functions, { onValue }), seen };
  }

  it("gets each printed value with its place and its position in the output", () => {
    const { output, seen } = trace("a {{ .name }}\n{{ range .list }}{{ . }},{{ end }}{{ $x := .name }}");
    assert.equal(output, "a Ada\nb,a,3,");
    assert.deepEqual(
      seen.map(([value, { line, column, offset }]) => [value, line, column, offset]),
      [
        ["Ada", 1, 6, 2],
        ["b", 2, 21, 6],
        ["a", 2, 21, 8],
        ["3", 2, 21, 10],
      ],
    );
    for (const [value, { offset }] of seen) assert.equal(output.slice(offset, offset + value.length), value);
  });

  it("gets the values that other templates print", () => {
    assert.deepEqual(
      trace(
        "{{ define `t` }}{{ . }}{{ end }}{{ template `t` .name }}{{ block `b` .empty }}{{ . }}{{ end }}",
      ).seen.map(([value]) => value),
      ["Ada", ""],
    );
  });

  for (const [text, safe] of [
    ["{{ .lines }}", false],
    ["{{ .lines | upper }}", false],
    ["{{ print .lines }}", false],
    ["{{ .lines | quote }}", true],
    ["{{ quote .lines }}", true],
    ["{{ (quote .lines) }}", true],
    ["{{ .lines | base64encode }}", true],
    ["{{ toJSON .map }}", true],
    ["{{ raw .lines }}", true],
    ["{{ .lines | trim | raw }}", true],
    ["{{ .lines | quote | upper }}", false],
    ["{{ quote .lines | print }}", false],
    ["{{ toYAML .lines }}", false],
    ["{{ $x := quote .lines }}{{ $x }}", false],
    ['{{ "\\n" }}', true],
    ["{{ 1 }}", true],
    ["{{ if .lines }}{{ . | len }}{{ end }}", false],
  ] as const) {
    it(`${safe ? "safe" : "not safe"}: ${text}`, () => {
      assert.deepEqual(
        trace(text).seen.map(([, context]) => context.safe),
        [safe],
      );
    });
  }

  it("replaces the value by its result", () => {
    const template = parseTemplate("rule", "k: {{ .name }}{{ `!` }}");
    const onValue = (text: string, { safe }: ValueContext): string => (safe ? text : "••••");
    assert.equal(template.execute(DATA, functions, { onValue }), "k: ••••!");
  });

  it("throws its errors to the caller unchanged", () => {
    const refusal = new Error("refused");
    const onValue = (): string => {
      throw refusal;
    };
    assert.throws(() => parseTemplate("rule", "{{ .name }}").execute(DATA, functions, { onValue }), refusal);
  });
});

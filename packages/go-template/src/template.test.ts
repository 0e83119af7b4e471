import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { testSeed } from "@devplat/testkit";
import fc from "fast-check";
import { parse as parseYaml } from "yaml";
import { TEMPLATE_ERROR_CODES, TemplateError, type TemplateErrorCode } from "./errors.ts";
import { STANDARD_FUNCTION_NAMES } from "./functions.ts";
import { MAX_NESTING, MAX_OUTPUT } from "./limits.ts";
import { DATA, functions, render } from "./template.test-kit.ts";
import { parseTemplate } from "./template.ts";
import type { TemplateData } from "./value.ts";

const seenCodes = new Set<TemplateErrorCode>();

function assertFailsWith(code: TemplateErrorCode, text: string, data: TemplateData = DATA): TemplateError {
  let caught: unknown;
  try {
    render(text, data);
  } catch (error) {
    caught = error;
  }
  assert.ok(caught instanceof TemplateError, `no TemplateError: ${String(caught)}`);
  assert.equal(caught.code, code, caught.message);
  seenCodes.add(code);
  return caught;
}

describe("missing keys", () => {
  for (const text of [
    "{{ .absent }}",
    "{{ .absent.deeper }}",
    "{{ .nothing.deeper }}",
    "{{ upper .absent }}",
    "{{ .absent | upper }}",
    "{{ .absent | quote }}",
    "{{ .absent | toJSON }}",
    "{{ printf `%v` .absent }}",
    "{{ eq .absent `` }}",
    "{{ len .absent }}",
    "{{ index .absent 1 }}",
    '{{ index .map "absent" }}',
    "{{ range .absent }}{{ else }}x{{ end }}",
    "{{ template `t` .absent }}{{ define `t` }}x{{ end }}",
    "{{ $x := .absent }}{{ $x }}",
    "{{ or .absent .absent }}",
    "{{ .absent | and 1 }}",
    "{{ default .absent .empty }}",
    "{{ (upper .absent) | default `x` }}",
    "{{ if upper .absent }}x{{ end }}",
  ]) {
    it(`a missing key is an error when printed or passed on: ${text} [agent 15.4]`, () => {
      const error = assertFailsWith("missing_key", text);
      assert.match(error.hint ?? "", /default/);
    });
  }

  it("a missing key gives an error with the existing names, and no value", () => {
    const template = parseTemplate("t", "{{ .tokn }}");
    const data = new Map([
      ["user", "planted-user"],
      ["token", "planted-token"],
    ]);
    assert.throws(
      () => template.execute(data, functions),
      (error: TemplateError) => {
        assert.match(error.hint ?? "", /^There is: token, user\. If it may be absent/);
        assert.doesNotMatch(`${error.message} ${error.hint ?? ""}`, /planted/);
        return true;
      },
    );
  });

  for (const [text, expected] of [
    ["{{ .absent | default `d` }}", "d"],
    ["{{ default `d` .absent }}", "d"],
    ["{{ .absent.deeper | default `d` }}", "d"],
    ["{{ .nothing.deeper | default `d` }}", "d"],
    ['{{ index .map "absent" | default `d` }}', "d"],
    ['{{ index .map "absent" "deeper" | default `d` }}', "d"],
    ["{{ if .absent }}a{{ else }}b{{ end }}", "b"],
    ["{{ with .absent }}a{{ else }}b{{ end }}", "b"],
    ["{{ if and .name .absent }}a{{ else }}b{{ end }}", "b"],
    ["{{ or .absent .name }}", "Ada"],
    ["{{ not .absent }}", "true"],
    ["{{ $x := .absent }}{{ $x | default `d` }}", "d"],
    ["{{ if or .absent (not .empty) }}a{{ end }}", "a"],
  ] as const) {
    it(`empty as direct input of default, if, with, and, or, not: ${text} [agent 15.5]`, () => {
      assert.equal(render(text), expected);
    });
  }

  it("default replaces empty values and null, and no others", () => {
    assert.equal(
      render(
        "{{ .empty | default 1 }}{{ .nothing | default 2 }}{{ .zero | default 3 }}{{ .name | default 4 }}",
      ),
      "123Ada",
    );
  });

  it("a null is an error if printed, and can be passed on", () => {
    assertFailsWith("null_value", "{{ .nothing }}");
    assert.equal(render("{{ .nothing | toJSON }}{{ eq .nothing nil }}"), "nulltrue");
  });

  for (const text of [
    "{{ .Data.data.password }}",
    "{{ with .Data.data }}{{ .password }}{{ end }}",
    "{{ .Data.data.password | default `d` }}",
    '{{ with secret "other" }}{{ .Data.data.password }}{{ end }}',
    '{{ (secret "other").Data.data.password }}',
  ]) {
    it(`.Data.data gets an error that names the right form: ${text} [agent 15.6]`, () => {
      const error = assertFailsWith("missing_key", text);
      if (text.includes("with .Data")) return;
      assert.match(error.hint ?? "", /write \.password instead of \.Data\.data\.password/);
    });
  }

  it("fields with the names Data and data are fields", () => {
    assert.equal(
      render("{{ .Data.data.x }}", new Map([["Data", new Map([["data", new Map([["x", "1"]])]])]])),
      "1",
    );
  });
});

describe("stored numbers", () => {
  it("print as stored, alone and in lists and maps [agent 15.7]", () => {
    assert.equal(
      render("{{ .price }} {{ .huge }} {{ .big }} {{ .zero }} {{ .list }}"),
      "1.10 1e400 9223372036854775808 -0.0e5 [b a 3]",
    );
    assert.equal(
      render("{{ .price | toJSON }} {{ .big | toYAML }} {{ quote .price }} {{ printf `%s %v` .huge .big }}"),
      '1.10 9223372036854775808 "1.10" 1e400 9223372036854775808',
    );
  });

  it("compare with int and float64", () => {
    assert.equal(
      render(
        "{{ eq .port 5432 }} {{ eq .port 5432.0 }} {{ lt .port 6000 }} {{ gt .price 1.05 }} {{ eq .price .price }}",
      ),
      "true true true true true",
    );
    assert.equal(render("{{ gt .big 9223372036854775807 }}"), "true");
    assertFailsWith("wrong_type", "{{ eq .port `5432` }}");
  });

  it("are accepted as integers", () => {
    assert.equal(
      render("{{ printf `%05d|%x` .port .port }} {{ index .list (index .list 2 | printf `%d` | len) }}"),
      "05432|1538 a",
    );
    assert.equal(render("{{ printf `%.1f` .price }} {{ printf `%d` .price }}"), "1.1 %!d(json.Number=1.10)");
  });

  it("are true unless zero", () => {
    assert.equal(
      render("{{ if .port }}a{{ end }}{{ if .zero }}b{{ else }}c{{ end }}{{ if .huge }}d{{ end }}"),
      "acd",
    );
  });

  it("a map with the key number is a map", () => {
    assert.equal(render("{{ .map.number }}{{ range $k, $v := .map }} {{ $k }}{{ end }}"), "7 a number z");
  });
});

describe("standardFunctions", () => {
  for (const [text, expected] of [
    ["{{ env `HOME` }}", "value of HOME"],
    ["{{ username }} {{ printf `%s` username }}", "ada ada"],
    ['{{ (secret "a/b").password }} {{ with secret "c" }}{{ .password }}{{ end }}', "of a/b of c"],
    ["{{ `ü` | base64encode }} {{ base64encode .port }}", "w7w= NTQzMg=="],
    ["{{ `w7w=` | base64decode }}{{ base64decode `w7w` }}{{ base64decode `` }}", "üü"],
    [`{{ quote "a\\"b\\n\\u007f" }} {{ quote .port }} {{ quote true }}`, '"a\\"b\\n\\u007f" "5432" "true"'],
    [
      "{{ toJSON .map }} {{ .list | toJSON }} {{ toJSON 1.5 }}",
      '{"z":"last","a":true,"number":"7"} ["b","a",3] 1.5',
    ],
    ["{{ indent 2 .lines }}|{{ .lines | indent 0 }}", "  one\n  two|one\ntwo"],
    ["{{ ` a b ` | trim }}|{{ upper `aß` }}|{{ lower `AÜ` }}", "a b|ASS|aü"],
    [
      "{{ `a,b,c` | split `,` | join `;` }} {{ index (split `:` `x:y`) 1 }} {{ join `+` .list }}",
      "a;b;c y b+a+3",
    ],
    [
      "{{ `a.b.c` | replace `.` `-` }} {{ replace `` `-` `ab` }} {{ replace `x` `$&` `axb` }}",
      "a-b-c -a-b- a$&b",
    ],
    ["{{ raw .lines }}", "one\ntwo"],
    ["{{ toYAML .map }}", 'z: last\na: true\nnumber: "7"'],
  ] as const) {
    it(`${text} gives ${JSON.stringify(expected)} [agent 15.2]`, () => assert.equal(render(text), expected));
  }

  for (const [text, code] of [
    ["{{ env `AGENT_TOKEN` }}", "function_failed"],
    ["{{ base64decode `w7w*` }}", "function_failed"],
    ["{{ base64decode `/w==` }}", "function_failed"],
    ["{{ base64decode `a` }}", "function_failed"],
    ["{{ upper .list }}", "wrong_type"],
    ["{{ upper .nothing }}", "wrong_type"],
    ["{{ join `,` .name }}", "wrong_type"],
    ["{{ join `,` (split `` `a`) 1 }}", "function_failed"],
    ["{{ indent -1 .name }}", "wrong_type"],
    ["{{ indent `2` .name }}", "wrong_type"],
    ["{{ upper }}", "function_failed"],
    ["{{ username 1 }}", "function_failed"],
    ["{{ default 1 }}", "function_failed"],
    ["{{ call .name }}", "function_failed"],
    ["{{ template `nowhere` }}", "no_template"],
    ["{{ .name.first }}", "wrong_type"],
    ["{{ .name 1 }}", "wrong_type"],
    ["{{ nowhere 1 }}", "unknown_function"],
  ] as const) {
    it(`${text} is ${code}`, () => void assertFailsWith(code, text));
  }

  it("every name of the list exists [agent 15.2]", () => {
    assert.deepEqual([...functions.keys()].toSorted(), [...STANDARD_FUNCTION_NAMES].toSorted());
  });

  it("toYAML: a YAML 1.1 and 1.2 parser reads any value unchanged", () => {
    const leaf = fc.oneof(
      fc.string({ unit: "binary" }).map((text) => text.toWellFormed()),
      fc.constantFrom(
        "no",
        "012",
        "1e3",
        "e5",
        "~",
        "",
        " a",
        "a: b",
        "- x",
        "#",
        "y",
        "0x1",
        "2020-01-01",
        "1:30",
        "=",
        "<<",
        "a #b",
        ".inf",
        "null",
        "a\nb",
      ),
      fc.boolean(),
      fc.constant(null),
    );
    const { value } = fc.letrec<{ value: TemplateData }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie("value"), { maxLength: 3 }),
        fc
          .array(
            fc.tuple(fc.oneof(fc.string(), fc.constantFrom("y", "1", "a b", "<<", "E6")), tie("value")),
            {
              maxLength: 3,
            },
          )
          .map((entries) => new Map(entries)),
      ),
    }));
    fc.assert(
      fc.property(value, (data) => {
        const text = render("{{ toYAML . }}", data);
        for (const version of ["1.1", "1.2"] as const) {
          assert.deepEqual(parseYaml(text, { version, mapAsMap: true }), data, text);
        }
        assert.deepEqual(JSON.parse(render("{{ toJSON . }}", data)), JSON.parse(JSON.stringify(plain(data))));
      }),
      { seed: testSeed(), numRuns: 500 },
    );
  });
});

function plain(value: TemplateData): unknown {
  if (value instanceof Map)
    return Object.fromEntries([...value].map(([key, item]) => [key, plain(item as TemplateData)]));
  return Array.isArray(value) ? value.map((item) => plain(item as TemplateData)) : value;
}

describe("TemplateError", () => {
  for (const [text, line, column] of [
    ["a\n  {{ .absent }}", 2, 6],
    ["{{ upper\n  .absent }}", 2, 3],
    ["{{ if .name }}\n{{ .name | nowhere }}{{ end }}", 2, 12],
    ["\n\n{{ if .name }}", 3, 4],
    ["{{ 'ab' }}", 1, 4],
    ["{{ define `t` }}\n{{ .absent }}{{ end }}{{ template `t` . }}", 2, 4],
    ["{{", 1, 3],
  ] as const) {
    it(`names template, line and column: ${JSON.stringify(text)}`, () => {
      let caught: unknown;
      try {
        render(text);
      } catch (error) {
        caught = error;
      }
      assert.ok(caught instanceof TemplateError);
      assert.deepEqual([caught.template, caught.line, caught.column], ["rule", line, column]);
      assert.ok(caught.message.startsWith(`rule:${line}:${column}: `), caught.message);
    });
  }

  it("quotes no value of the data [agent 15.11]", () => {
    const secret = "hunter2";
    const data: TemplateData = new Map<string, TemplateData>([
      ["s", secret],
      ["l", [secret]],
      ["m", new Map([[secret, secret]])],
    ]);
    for (const text of [
      "{{ .s.x }}",
      "{{ range .s }}{{ end }}",
      "{{ index .l .s }}",
      "{{ index .m .l }}",
      "{{ eq .s 1 }}",
      "{{ lt .l .s }}",
      "{{ slice .l .s }}",
      "{{ len 1 }}{{ .s }}",
      "{{ base64decode .s }}",
      "{{ join .s .s }}",
      "{{ upper .l }}",
      "{{ call .s }}",
      "{{ printf .l }}",
      "{{ indent .s .s }}",
    ]) {
      let caught: unknown;
      try {
        render(text, data);
      } catch (error) {
        caught = error;
      }
      assert.ok(caught instanceof TemplateError, text);
      assert.ok(
        !`${caught.message}${caught.hint ?? ""}${String(caught.cause)}`.includes(secret),
        caught.message,
      );
    }
  });
});

describe("limits", () => {
  for (const [what, text] of [
    ["endless recursion", "{{ define `t` }}{{ template `t` }}{{ end }}{{ template `t` }}"],
    ["a huge range", "{{ range 9223372036854775807 }}{{ end }}"],
    ["ranges in ranges", "{{ range 5000 }}{{ range 5000 }}{{ end }}{{ end }}"],
    ["output without end", `{{ range 9000 }}${"x".repeat(1_000)}{{ end }}`],
    ["a value that doubles", `{{ $x := "ab" }}{{ range 40 }}{{ $x = print $x $x }}{{ end }}`],
    ["indent", "{{ indent 9000000 `a` }}"],
    ["indent beyond any number", "{{ indent 9223372036854775807 `a` }}"],
    ["replace", "{{ $x := printf `%999999d` 1 }}{{ replace ` ` $x $x }}"],
    ["join", "{{ $x := printf `%999999d` 1 }}{{ join $x (split `` (slice $x 0 100)) }}"],
    [
      "long lists in few steps",
      "{{ $x := printf `%999999d` 1 }}{{ range 200 }}{{ $y := split `` $x }}{{ end }}",
    ],
    ["long texts in few steps", "{{ $x := printf `%999999d` 1 }}{{ range 200 }}{{ $y := html $x }}{{ end }}"],
    ["printf, one width", "{{ printf `%1000001d` 1 }}"],
    ["printf, many widths", `{{ printf "${"%1000000d".repeat(10)}" ${"1 ".repeat(10)}}}`],
    ["parentheses", `{{ ${"(".repeat(MAX_NESTING + 1)}1${")".repeat(MAX_NESTING + 1)} }}`],
    ["control structures", `${"{{if 1}}".repeat(MAX_NESTING + 1)}${"{{end}}".repeat(MAX_NESTING + 1)}`],
    ["else if", `{{if 0}}${"{{else if 0}}".repeat(MAX_NESTING + 1)}{{end}}`],
    ["a hundred thousand parentheses", `{{ ${"(".repeat(100_000)}1${")".repeat(100_000)} }}`],
    [
      "deep structures in deep calls",
      `{{ define "t" }}${"{{if 1}}".repeat(190)}{{ template "t" }}${"{{end}}".repeat(190)}{{ end }}{{ template "t" }}`,
    ],
  ] as const) {
    it(`${what} ends in limit [agent 19.5]`, () => void assertFailsWith("limit", text));
  }

  it("output up to the limit is allowed", () => {
    const data = "x".repeat(MAX_OUTPUT / 2);
    assert.equal(render("{{ . }}{{ . }}", data).length, MAX_OUTPUT);
    assertFailsWith("limit", "{{ . }}{{ . }}!", data);
  });
});

describe("parseTemplate", () => {
  it("text without delimiters is printed unchanged", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const plainText = text.replaceAll("{{", "{");
        assert.equal(render(plainText), plainText.includes("{{") ? render(plainText) : plainText);
      }),
      { seed: testSeed(), numRuns: 1_000 },
    );
  });

  it("any text gives a template or a TemplateError, any template text or the same", () => {
    const piece = fc.constantFrom(
      ..."{{ }} {{- -}} ( ) | . .a $ $x := = , \" ` ' \\ 1 0x 1e /* */ if else end range with define block template break continue nil true print and \n a é \u{1f511} \0 {".split(
        " ",
      ),
      " ",
      " ",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        try {
          render(pieces.join(""));
        } catch (error) {
          assert.ok(error instanceof TemplateError, String(error));
        }
      }),
      { seed: testSeed(), numRuns: 5_000 },
    );
  });

  for (const text of [
    "{{",
    "{{ if }}{{ end }}",
    "{{ end }}",
    "{{ .a-b }}",
    "{{ 1_ }}",
    "{{ $x }}",
    "{{ break }}",
    "{{ 1 | 2 }}",
    '{{ "\\q" }}',
    "{{ define `t` }}",
  ]) {
    it(`${text} is syntax`, () => void assertFailsWith("syntax", text));
  }

  for (const [what, text] of [
    ["blanks", " ".repeat(1_000_000) + "x"],
    ["blanks before trim markers", `${" ".repeat(500_000)}x{{- 1 -}}${" ".repeat(500_000)}`],
    ["blanks in an action", `{{ ${" ".repeat(1_000_000)}1 }}`],
    ["open quotes", `{{ "${"\\a".repeat(500_000)}`],
    ["braces", "{ ".repeat(500_000)],
    ["comments", "{{/* */}}".repeat(50_000)],
    ["lines", "{{ 1 }}\n".repeat(50_000)],
    ["a name", `{{ .${"a".repeat(1_000_000)} | default 1 }}`],
  ] as const) {
    it(`a long text of ${what} is parsed in linear time`, () => {
      try {
        render(text);
      } catch (error) {
        assert.ok(error instanceof TemplateError);
      }
    });
  }

  it("only listed functions can be called", () => {
    assert.throws(() => parseTemplate("rule", "{{ upper `a` }}", { functions: [] }), TemplateError);
    parseTemplate("rule", "{{ mine `a` }}", { functions: ["mine"] });
  });

  it("a template can be executed again, and keeps no state of earlier runs", () => {
    const template = parseTemplate("rule", "{{ $x := .name }}{{ $x }}");
    assert.equal(template.execute(DATA, functions), "Ada");
    assert.equal(template.execute(new Map([["name", "Eve"]]), functions), "Eve");
  });
});

describe("TEMPLATE_ERROR_CODES", () => {
  it("each has a case above", () =>
    assert.deepEqual([...seenCodes].toSorted(), [...TEMPLATE_ERROR_CODES].toSorted()));
});

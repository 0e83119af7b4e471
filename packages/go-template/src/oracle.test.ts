import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Outcome, DATA, go, ours } from "./oracle.test-kit.ts";

const TEMPLATES = String.raw`
plain text
{{.name}}
{{ .name }} and {{.half}} {{.big}} {{.small}} {{.million}} {{.minus}} {{.yes}}
a {{- .name -}} b
a  {{- .name }}  b
a  {{ .name -}}  b
{{- /* comment */ -}} x
x {{/* comment */}} y
x {{/* comment }}
x {{/* a */ }} y
{{- 3}} {{-3}} {{3 -}}
{{ -3 }} {{ +3 }} {{ - 3}}
{{}}
{{ }}
{{-}}
{{.}}x{{.map}}{{.mixed}}{{.deep}}
{{.list}} {{.none}} {{.bare}}
{{.lines}}
{{.unicode}}
{{"a\tb\n\"q\" \\ \x41 \101 \u00fc \U0001f511"}}
{{"bad \q"}}
{{"bad \'"}}
{{"open}}
{{${"`"}raw \n "text"${"`"}}}
{{'a'}} {{'\n'}} {{'\''}} {{'ü'}} {{'\x41'}}
{{''}}
{{'ab'}}
{{'\"'}}
{{0x1F}} {{0b101}} {{0o17}} {{017}} {{1_000}} {{0x_ff}}
{{09}}
{{1__0}}
{{_1}}
{{1e3}} {{1.5e-7}} {{.5}} {{5.}} {{1e21}} {{1e20}} {{123456789.0}} {{0x1p4}} {{0x1.8p1}}
{{1e400}}
{{9223372036854775807}} {{-9223372036854775808}}
{{9223372036854775808}}
{{1x}}
{{true}} {{false}} {{print nil}}
{{nil}}
{{true | print}}
{{print 1 2 "a" "b" 3 4 true nil}}
{{println 1 "a"}}{{print}}{{println}}
{{print .mixed .map}}
{{1 | 2}}
{{.name | .name}}
{{.name "x"}}
{{"x" "y"}}
{{.name.first}}
{{.deep.a.b.c}} {{(.deep).a.b.c}} {{(index .deep.list 1).n}}
{{$.name}} {{$}}
{{$x := .deep.a}}{{$x.b.c}}
{{$x := 1}}{{$x = 2}}{{$x}}
{{$x = 2}}
{{$x}}
{{$x := $x}}
{{if true}}{{$x := 1}}{{end}}{{$x}}
{{$x := 1}}{{if true}}{{$x := 2}}{{$x}}{{end}}{{$x}}
{{$x := 1}}{{if true}}{{$x = 2}}{{$x}}{{end}}{{$x}}
{{$x := 1 | print}}{{$x}}
{{$a, $b := 1}}
{{with $x := .name}}{{$x}}{{.}}{{end}}
{{with .empty}}a{{else}}b{{end}}
{{with .empty}}a{{else with .name}}b{{.}}{{else}}c{{end}}
{{with .empty}}a{{else if .name}}b{{end}}
{{if .empty}}a{{else if .zero}}b{{else if .name}}c{{else}}d{{end}}
{{if .empty}}a{{else with .name}}b{{end}}
{{if .none}}a{{else}}b{{end}}{{if .bare}}a{{else}}b{{end}}{{if .nothing}}a{{else}}b{{end}}{{if .half}}a{{else}}b{{end}}
{{if}}a{{end}}
{{if .name}}a
{{if .name}}a{{else}}b{{else}}c{{end}}
{{end}}
{{else}}
{{if .name}}{{define "x"}}{{end}}{{end}}
{{if $x := .name}}{{$x}}{{else}}{{$x}}{{end}}
{{if $x := .empty}}{{$x}}{{else}}[{{$x}}]{{end}}
{{range .list}}{{.}},{{end}}
{{range $x := .list}}{{$x}},{{end}}
{{range $i, $x := .list}}{{$i}}={{$x}},{{end}}
{{range $k, $v := .map}}{{$k}}={{$v}},{{end}}
{{range .map}}{{.}},{{end}}
{{range .none}}a{{else}}none{{end}}
{{range .nothing}}a{{else}}none{{end}}
{{range .name}}a{{end}}
{{range .half}}a{{end}}
{{range 3}}{{.}}{{end}}{{range $i := 2}}{{$i}}{{end}}{{range 0}}a{{else}}zero{{end}}
{{range -1}}a{{else}}zero{{end}}
{{range $i, $j := 3}}{{end}}
{{range $i, $j, $k := .list}}{{end}}
{{range $i, .list}}{{end}}
{{range .list}}{{if eq . "y"}}{{continue}}{{end}}{{.}}{{end}}
{{range .list}}{{if eq . "y"}}{{break}}{{end}}{{.}}{{end}}
{{range $i, $x := .list}}{{range $.list}}{{if eq . "y"}}{{break}}{{end}}{{$i}}{{.}} {{end}}{{end}}
{{range .list}}{{with .}}{{if eq . "y"}}{{continue}}{{end}}{{.}}{{end}}{{end}}
{{break}}
{{range .list}}{{else}}{{break}}{{end}}
{{range .list}}{{end}}{{continue}}
{{range .list}}{{break 1}}{{end}}
{{$i := 0}}{{$x := ""}}{{range $i, $x = .list}}{{end}}{{$i}}{{$x}}
{{$x := ""}}{{range $x = .list}}{{$x}}{{end}}{{$x}}
{{range $x := .list}}{{$x = "c"}}{{$x}}{{end}}
{{range $x := .none}}{{else}}{{$x}}{{end}}
{{$.name}}{{range .list}}{{$.name}}{{end}}
{{define "a"}}[{{.}}]{{end}}{{template "a" .name}}{{template "a" 1}}
{{define "a"}}[{{.}}{{$}}]{{end}}{{template "a" .list}}
{{define "a"}}{{$x}}{{end}}{{$x := 1}}{{template "a"}}
{{template "nowhere"}}
{{template name}}
{{template}}
{{template "a" .name "b"}}{{define "a"}}{{end}}
{{define "a"}}1{{end}}{{define "a"}}2{{end}}
{{define "a"}} {{end}}{{define "a"}}2{{end}}{{template "a"}}
{{define "a"}}2{{end}}{{define "a"}}{{end}}{{template "a"}}
{{block "b" .name}}<{{.}}>{{end}}{{template "b" 2}}
{{range .list}}{{block "c" .}}{{.}};{{end}}{{end}}
{{range .list}}{{block "c" .}}{{break}}{{end}}{{end}}
{{define "a"}}{{else}}{{end}}
{{define .name}}{{end}}
{{and 1 0 2}} {{and 1 2}} {{or 0 "" 3}} {{or 0 ""}}. {{not 0}} {{not "a"}}
{{and}}
{{not 1 2}}
{{and .empty .name.bad}}.{{or .name .name.bad}}
{{or .empty .name.bad}}
{{1 | and 0}} {{1 | and 2}} {{0 | or 0}} {{0 | or 5}}
{{and (eq 1 1) (lt 1 2)}}
{{eq 1 1}} {{eq 1 2 1}} {{eq "a" "a"}} {{eq true true}} {{eq 1.5 1.5}} {{ne 1 2}}
{{eq 1}}
{{eq 1 "a"}}
{{eq 1 1.0}}
{{eq .one 1.0}}
{{eq .one 1}}
{{eq .list .list}}
{{eq .list nil}}
{{eq .nothing nil}} {{eq nil nil}} {{eq .name nil}} {{ne .name nil}} {{eq 1 nil}}
{{lt 1 2}} {{lt 2 1}} {{le 1 1}} {{gt 1 2}} {{ge 2 2}} {{lt "a" "b"}} {{lt 1.5 2.5}} {{lt "ab" "b"}}
{{lt true false}}
{{lt nil 1}}
{{lt 1 "a"}}
{{lt .list 1}}
{{lt "\uff5e" "\U0001f511"}}
{{index .list 1}} {{index .map "a"}} {{index .deep "a" "b" "c"}} {{index .deep.list 0 "n"}} {{index .list}}
{{index .list 3}}
{{index .list 4}}
{{index .list -1}}
{{index .list "a"}}
{{index .list 1.0}}
{{index .map 1}}
{{index .name 0}} {{index "ü" 1}}
{{index .nothing 1}}
{{index nil}}
{{index 1 1}}
{{slice .list 1}} {{slice .list 0 2}} {{slice .name 1}} {{slice .name 1 2}} {{slice .list}} {{slice .list 1 2 3}} {{slice .list 3}}
{{slice .list 2 1}}
{{slice .list 4}}
{{slice .name 1 2 3}}
{{slice .map}}
{{slice .list 1 2 3 4}}
{{slice nil}}
{{len .list}} {{len .map}} {{len .name}} {{len .unicode}} {{len ""}}
{{len 1}}
{{len nil}}
{{len .nothing}}
{{html .html}} {{html .lines}} {{html 1 "<"}} {{.html | html}} {{html .list}}
{{js .html}} {{js .lines}} {{js .unicode}} {{js "\\"}}
{{urlquery .html}} {{urlquery .unicode}} {{urlquery "a b" "c"}} {{urlquery "!'()*~-._"}}
{{call .name}}
{{call}}
{{call nil}}
{{printf "%s|%v|%q" .name .name .name}}
{{printf "%d %5d|%-5d|%05d|%+d|% d|%x|%X|%#x|%o|%#o|%O|%b|%c|%q|%U|%#U" 1 2 3 4 5 6 255 255 255 8 8 8 5 65 65 65 0x1f511}}
{{printf "%f|%.2f|%8.3f|%-8.2f|%08.2f|%+.1f|%e|%E|%g|%G|%.3g|%#g|%x|%b" 1.5 1.005 3.14159 2.5 -2.5 1.25 123456.789 0.000001 1e21 1e-7 1234.5 1.0 1.0 1.0}}
{{printf "%t|%5t|%v" true false true}}
{{printf "%5s|%-5s|%05s|%.2s|%5.1s|%x|%X|% x|%#x|%# x|%+q|%#q" "ab" "ab" "ab" "abc" "abc" "hi" "hi" "hi" "hi" "hi" "ü" "a"}}
{{printf "%d" "a"}} {{printf "%s" 1}} {{printf "%t" 1}} {{printf "%z" 1}} {{printf "%d" nil}} {{printf "%v" nil}} {{printf "%s" nil}} {{printf "%!" 1}}
{{printf "%d %d" 1}} {{printf "%d" 1 2}} {{printf "%d" 1 "a" nil true 1.5}} {{printf "%"}} {{printf "100%%"}} {{printf "%5%"}}
{{printf "%[2]d %[1]d" 1 2}} {{printf "%[3]d" 1}} {{printf "%[x]d" 1}} {{printf "%[1]*d|" 5}} {{printf "%[2]*[1]d|" 7 5}} {{printf "%[1" 1}} {{printf "%[1]" 1}}
{{printf "%*d|%-*d|%.*f|%*d" 5 1 5 2 2 3.14159 -4 3}} {{printf "%*d" "a" 1}} {{printf "%.*d" "a" 1}} {{printf "%.*d" -1 1}}
{{printf "%T %T %T %T %T %T" 1 1.5 "a" true .list .map}} {{printf "%T" nil}}
{{printf "%v %+v %s %q %d" .mixed .mixed .list .list .list}}
{{printf "%#v %#v %#v %#v %#v" "a" 1 true .list .none}}
{{printf "%#v" .mixed}}
{{printf "%5v|%-5v|%05v" "a" "b" 3}} {{printf "%6.2v|" 3.14159}} {{printf "%3c|%-3c|" 65 66}} {{printf "%06.2f" -1.5}} {{printf "%+05d|%x|%X" 3 -255 "ÿ"}}
{{printf "%.0d|%.0d|%.5d|%8.5d|%08.5d" 0 1 42 42 42}} {{printf "% 05d|%+.3e|%010.3e" 42 12345.678 -12345.678}}
{{printf}}
{{printf 1}}
{{printf .name .name}}
{{"%s" | printf}} {{"a" | printf "%s-%s" "b"}}
{{printf "%s" (print 1 2)}} {{print (print (print 1))}} {{(print 1)}} {{(1)}} {{((.name))}}
{{print (}}
{{print )}}
{{print (1}}
{{()}}
{{print | print}}
{{| print}}
{{print |}}
{{.name|print|print}} {{print .name|print}}{{print(.name)}}
{{.}}}
{{{.name}}
}}{{"{{"}}{{"}}"}}
{{.name}
{{.na-me}}
{{.name;}}
{{.name,}}
{{a.b}}
{{.a.}}
{{..}}
{{.name .}}
{{..name}}
{{$.}}
{{$1 := 2}}{{$1}}
{{.1}} {{.5.5}}
{{1.name}}
{{"a".name}}
{{nil.name}}
{{true.name}}
{{print .name.}}
{{.üöä}}
{{print 1
2}}
{{print "a
b"}}
{{/* a
b */}}x
{{if .name }} {{- "a" -}} {{ end }}
{{- if .name -}}   x   {{- else -}}   y   {{- end -}}
{{if not .name}}a{{end}}.
{{if (and .name (not .empty))}}a{{end}}
{{with $y := index .list 0}}{{with index $.list 1}}{{$y}}{{.}}{{end}}{{end}}
{{end }}
{{if .name}}a{{end x}}
{{else if .name}}
{{range}}{{end}}
{{with}}{{end}}
{{if .name | eq "Ada"}}a{{end}}
{{undefined_function 1}}
{{.name | undefined_function}}
{{block "x"}}{{end}}
{{block}}{{end}}
{{define "x"}}
{{nil | print}}
{{if nil}}a{{end}}
{{if print nil}}a{{end}}
{{$x := nil}}
{{print $}}
{{template "t"}}
`
  .split("\n{{")
  .map((template, index) => (index === 0 ? template : `{{${template}`))
  .filter((template) => !["\nplain text"].includes(template));

describe("oracle: Go's own engine", () => {
  it("has at least two hundred templates", () =>
    assert.ok(TEMPLATES.length >= 200, String(TEMPLATES.length)));

  for (const template of TEMPLATES) {
    it(`agrees on ${JSON.stringify(template.slice(0, 90))} [agent 15.1]`, async () => {
      assert.deepEqual(ours(template, DATA), await go(template, DATA));
    });
  }
});

describe("oracle: on purpose different from Go", () => {
  const differences: readonly [why: string, template: string, go: Outcome, ours: Outcome][] = [
    ["an absent key is empty to if", "{{if .absent}}a{{else}}b{{end}}", "error", { text: "b" }],
    ["an absent key is empty to with", "{{with .absent}}a{{else}}b{{end}}", "error", { text: "b" }],
    [
      "an absent key is empty to and, or, not",
      "{{and .absent 1 | not}}{{or .absent 2}}",
      "error",
      { text: "true2" },
    ],
    ["so is one below an absent key", "{{if .absent.deeper.still}}a{{else}}b{{end}}", "error", { text: "b" }],
    ["so is one below a null", "{{if .nothing.deeper}}a{{else}}b{{end}}", "error", { text: "b" }],
    [
      "an absent key found by index is an error when printed",
      '{{index .map "absent"}}',
      { text: "<no value>" },
      "error",
    ],
    [
      "an absent key found by index is an error when passed on",
      '{{print (index .map "x")}}',
      { text: "<nil>" },
      "error",
    ],
    [
      "nothing is below an absent key for index too",
      '{{if index .map "x" "y"}}a{{else}}b{{end}}',
      "error",
      { text: "b" },
    ],
    ["a null is never printed", "{{.nothing}}", { text: "<no value>" }, "error"],
    ["a null is never escaped", "{{html .nothing}}", { text: "&lt;no value&gt;" }, "error"],
  ];
  for (const [why, template, expectedOfGo, expectedOfUs] of differences) {
    it(`${why}: ${template}`, async () => {
      assert.deepEqual(await go(template, DATA), expectedOfGo);
      assert.deepEqual(ours(template, DATA), expectedOfUs);
    });
  }
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { testSeed } from "@devplat/testkit";
import fc from "fast-check";
import { TemplateError } from "./errors.ts";
import { NOTHING_THERE, INTENDED, DATA, outcome, go, runGo, ours, run } from "./oracle.test-kit.ts";

describe("oracle: generated templates", () => {
  const seed = testSeed();

  it("printf agrees on any format", async () => {
    const flags = fc
      .array(fc.constantFrom("+", "-", "#", "0", " "), { maxLength: 3 })
      .map((each) => each.join(""));
    const width = fc.oneof(fc.constant(""), fc.nat(12).map(String), fc.constant("*"));
    const precision = fc.oneof(
      fc.constant(""),
      fc.constant("."),
      fc.nat(8).map((digits) => `.${digits}`),
    );
    const verb = fc.constantFrom(...Array.from("vTtbcdoOxXUeEfFgGsqz%"));
    const index = fc.oneof(
      { weight: 8, arbitrary: fc.constant("") },
      { weight: 1, arbitrary: fc.nat(4).map((n) => `[${n}]`) },
    );
    const directive = fc
      .tuple(flags, index, width, precision, verb)
      .map(([f, i, w, p, v]) => `%${f}${i}${w}${p}${v}`);
    const literal = fc.oneof(
      fc.integer({ min: -300, max: 300 }).map(String),
      fc.constantFrom("65", "128273", "1114112", "9223372036854775807", "-9223372036854775808"),
      fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e22, max: 1e22 }).map((value) => {
        const text = String(value);
        return /[.e]/.test(text) ? text : `${text}.0`;
      }),
      fc.constantFrom(
        '"abc"',
        '"ü€"',
        '"a\\tb\\"c"',
        '""',
        '"\\x7f\\u200b"',
        "true",
        "nil",
        ".list",
        ".mixed",
        ".map",
      ),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(directive, { maxLength: 3 }),
        fc.array(literal, { maxLength: 4 }),
        async (verbs, args) => {
          const template = `{{printf "${verbs.join("|")}" ${args.join(" ")}}}`;
          assert.deepEqual(ours(template, DATA), await go(template, DATA), template);
        },
      ),
      { seed, numRuns: 1_000 },
    );
  });

  it("agrees on templates that are combined at random [agent 15.1]", async () => {
    const data = ".  .name .list .map .deep.a .deep.a.b.c $ $x $.name .one .yes .empty".split(/ +/);
    const literals = ["1", "-2", "1.5", '"s"', "`r`", "'c'", "true", "nil"];
    const parentheses = ["(print 1 2)", "(index .list 0)", "(len .name)", "(.deep).a"];
    const operand = fc.constantFrom(...data, ...literals, ...parentheses);
    const command = fc.oneof(
      operand,
      fc
        .tuple(
          fc.constantFrom(
            "print",
            "printf",
            "println",
            "len",
            "index",
            "eq",
            "ne",
            "lt",
            "and",
            "or",
            "not",
            "slice",
          ),
          fc.array(operand, { maxLength: 3 }),
        )
        .map(([name, args]) => [name, ...args].join(" ")),
    );
    const pipeline = fc
      .array(command, { minLength: 1, maxLength: 3 })
      .map((commands) => commands.join(" | "));
    const open = fc.constantFrom("{{", "{{- ", "{{ ");
    const close = fc.constantFrom("}}", " -}}", " }}");
    const { node } = fc.letrec<{ node: string; list: string }>((tie) => ({
      list: fc.array(tie("node"), { maxLength: 3 }).map((nodes) => nodes.join("")),
      node: fc.oneof(
        { maxDepth: 3, withCrossShrink: true },
        fc.constantFrom("text", " ", "\n", "  a  ", "}", "{"),
        fc.tuple(open, pipeline, close).map((parts) => parts.join("")),
        fc.constantFrom("{{$x := 5}}", "{{$x = 6}}", "{{/* c */}}", "{{break}}", "{{continue}}"),
        fc
          .tuple(
            fc.constantFrom("if", "with", "range", "range $x :=", "range $i, $x :="),
            pipeline,
            tie("list"),
            tie("list"),
            fc.boolean(),
          )
          .map(
            ([kind, head, body, other, hasElse]) =>
              `{{${kind} ${head}}}${body}${hasElse ? `{{else}}${other}` : ""}{{end}}`,
          ),
      ),
    }));
    await fc.assert(
      fc.asyncProperty(fc.array(node, { minLength: 1, maxLength: 4 }), async (nodes) => {
        const template = `{{$x := 1}}${nodes.join("")}`;
        const [found, expected] = [run(template, DATA), await runGo(template, DATA)];
        if (found instanceof TemplateError && INTENDED.has(found.code)) return;
        if (expected instanceof Error && NOTHING_THERE.test(expected.message)) return;
        assert.deepEqual(outcome(found), outcome(expected), template);
      }),
      { seed, numRuns: 1_500 },
    );
  });
});

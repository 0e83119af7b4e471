import assert from "node:assert/strict";
import { parse as renderWithGo } from "@evertdespiegeleer/go-template";
import { TemplateError, type TemplateErrorCode } from "./errors.ts";
import { parseTemplate } from "./template.ts";
import type { TemplateData } from "./value.ts";

/** Result of a template. Messages differ from Go's and are not compared. */
export type Outcome = { readonly text: string } | "error";

/** Go's errors for values that this package takes as empty in some places. */
export const NOTHING_THERE = /map has no entry for key|index of nil pointer/;

/** Intended differences: a missing value or null is never printed or passed on. */
export const INTENDED: ReadonlySet<TemplateErrorCode> = new Set(["missing_key", "null_value"]);

export const DATA = {
  name: "Ada",
  empty: "",
  zero: 0,
  one: 1,
  half: 0.5,
  big: 1e21,
  small: 0.00001234,
  million: 1_000_000,
  minus: -3,
  yes: true,
  no: false,
  nothing: null,
  html: `<a href="x">'&'</a>`,
  lines: "a\nb\r\n\tc\u0000\u0001",
  unicode: "ü€\u{1f511}\u200b\u00a0",
  list: ["x", "y", "z"],
  none: [],
  mixed: [1, "a", null, true, ["n"], { k: 1 }],
  map: { b: 2, a: 1, "\u{1f511}": 3, "\uff5e": 4, "10": 5, "9": 6 },
  bare: {},
  deep: { a: { b: { c: "found" } }, list: [{ n: "first" }, { n: "second" }] },
};

export function outcome(result: string | Error): Outcome {
  return typeof result === "string" ? { text: result } : "error";
}

export async function go(template: string, data: unknown): Promise<Outcome> {
  return outcome(await runGo(template, data));
}

/** Go's result: the text, or the error. */
export async function runGo(template: string, data: unknown): Promise<string | Error> {
  try {
    return await renderWithGo(template, data);
  } catch (error) {
    assert.ok(error instanceof Error);
    return error;
  }
}

export function ours(template: string, data: unknown): Outcome {
  return outcome(run(template, data));
}

/** Result of this package: the text, or the error. */
export function run(template: string, data: unknown): string | TemplateError {
  try {
    return parseTemplate("t", template, { functions: [] }).execute(floats(data) as TemplateData);
  } catch (error) {
    assert.ok(error instanceof TemplateError, String(error));
    return error;
  }
}

/** Converts numbers to float64, as Go's JSON does, so that both engines get the same values. */
function floats(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(floats);
  if (typeof value !== "object" || value === null) return value;
  return new Map(Object.entries(value).map(([key, item]) => [key, floats(item)]));
}

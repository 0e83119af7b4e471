import { FunctionError } from "./errors.ts";
import { textFunction, textOf, type FunctionMap, type TemplateFunction } from "./function.ts";
import { toJson, toYaml } from "./json.ts";
import { MAX_OUTPUT } from "./limits.ts";
import { asInteger, isList, typeName, type TemplateData, type Value } from "./value.ts";

/** Functions that the caller of a template provides. Each may throw a FunctionError. No message may quote a value. */
export interface FunctionSources {
  /** The value of an environment variable. */
  readonly env: (name: string) => string;
  /** The fields of another secret. */
  readonly secret: (path: string) => TemplateData;
  readonly username: () => string;
}

/** Names of {@link standardFunctions}. `default` also exists; the evaluator runs it itself. */
export const STANDARD_FUNCTION_NAMES = [
  "env",
  "base64encode",
  "base64decode",
  "quote",
  "username",
  "toJSON",
  "toYAML",
  "indent",
  "trim",
  "upper",
  "lower",
  "split",
  "join",
  "replace",
  "secret",
  "raw",
] as const;

/**
 * Functions in addition to Go's own. The last argument is the text to change, so that it can come from `|`:
 * `indent 4 text`, `split "," text`, `join "," list`, `replace "old" "new" text`.
 */
export function standardFunctions(sources: FunctionSources): FunctionMap {
  const functions: Record<(typeof STANDARD_FUNCTION_NAMES)[number], TemplateFunction> = {
    env: textFunction(1, sources.env),
    secret: textFunction(1, sources.secret),
    username: { arity: [0, 0], call: () => sources.username() },
    base64encode: textFunction(1, (text = "") => Buffer.from(text).toString("base64"), { makesSafe: true }),
    base64decode: textFunction(1, decodeBase64),
    // JSON's escapes, which YAML and TOML also read. They do not read all of Go's escapes.
    quote: textFunction(1, (text = "") => JSON.stringify(text).replaceAll("\x7f", "\\u007f"), {
      makesSafe: true,
    }),
    toJSON: { arity: [1, 1], makesSafe: true, call: ([value = null]) => toJson(value) },
    toYAML: { arity: [1, 1], call: ([value = null]) => toYaml(value) },
    indent: { arity: [2, 2], call: ([count = null, text = null]) => indent(count, textOf(text)) },
    trim: textFunction(1, (text = "") => text.trim()),
    upper: textFunction(1, (text = "") => text.toUpperCase()),
    lower: textFunction(1, (text = "") => text.toLowerCase()),
    split: textFunction(2, (separator = "", text = "") =>
      separator === "" ? Array.from(text) : text.split(separator),
    ),
    join: { arity: [2, 2], call: ([separator = null, list = null]) => join(textOf(separator), list) },
    replace: textFunction(3, replace),
    raw: { arity: [1, 1], makesSafe: true, call: ([value = null]) => value },
  };
  return new Map(Object.entries(functions));
}

function decodeBase64(text = ""): string {
  const compact = text.replace(/[\r\n]/g, "");
  const bytes = Buffer.from(compact, "base64");
  // Buffer ignores characters that are not base64.
  if (
    bytes.toString("base64").replace(/=+$/, "") !== compact.replace(/=+$/, "") ||
    compact.length % 4 === 1
  ) {
    throw new FunctionError("the text is not base64");
  }
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new FunctionError("the decoded base64 is not UTF-8 text");
  }
}

function indent(count: Value, text: string): string {
  const spaces = asInteger(count);
  if (spaces === undefined || spaces < 0n) {
    throw new FunctionError(`the first argument is a number of spaces, not ${typeName(count)}`, "wrong_type");
  }
  const lines = text.split("\n");
  checkLength(text.length + lines.length * Math.min(Number(spaces), MAX_OUTPUT));
  const margin = " ".repeat(Number(spaces));
  return lines.map((line) => margin + line).join("\n");
}

function join(separator: string, list: Value): string {
  if (typeof list !== "object" || list === null || !isList(list)) {
    throw new FunctionError(`expected a list, found ${typeName(list)}`, "wrong_type");
  }
  const texts = list.map(textOf);
  checkLength(texts.reduce((sum, text) => sum + text.length + separator.length, 0));
  return texts.join(separator);
}

/** Replaces every occurrence. An empty `old` matches before each character and at the end, as in Go. */
function replace(old = "", replacement = "", text = ""): string {
  const pieces = old === "" ? ["", ...Array.from(text), ""] : text.split(old);
  checkLength(text.length + pieces.length * replacement.length);
  return old === ""
    ? replacement + Array.from(text, (character) => character + replacement).join("")
    : pieces.join(replacement);
}

function checkLength(length: number): void {
  if (length > MAX_OUTPUT) throw new FunctionError("the text is too long", "limit");
}

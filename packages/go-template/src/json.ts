import { formatFloat } from "./float.ts";
import { isList, isMap, type Value } from "./value.ts";

/** A value as compact JSON: numbers as stored, keys in the data's order. */
export function toJson(value: Value): string {
  if (value === null || typeof value === "string" || typeof value === "boolean") return JSON.stringify(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return formatFloat(value, "g", -1);
  if (isList(value)) return `[${value.map(toJson).join(",")}]`;
  if (isMap(value)) {
    return `{${[...value].map(([key, item]) => `${JSON.stringify(key)}:${toJson(item)}`).join(",")}}`;
  }
  return value.number;
}

/**
 * A value as YAML 1.2 in block style, which YAML 1.1 parsers read in the same way. It has no final line feed. Texts
 * that a parser could read as another type are in double quotes, with JSON's escapes.
 */
export function toYaml(value: Value): string {
  return yamlLines(value).join("\n");
}

/** Text that starts with a letter and has no characters with a meaning in YAML. */
const PLAIN_TEXT = /^[A-Za-z_/][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*$/;
/** Words that YAML 1.1 or 1.2 reads as a boolean or null, and exponents, which some parsers read as a number. */
const RESERVED = /^(?:y|n|yes|no|on|off|true|false|null|e[-+]?[0-9]+)$/i;

function yamlLines(value: Value): string[] {
  if (value !== null && typeof value === "object") {
    if (isList(value)) {
      if (value.length === 0) return ["[]"];
      return value.flatMap((item) =>
        yamlLines(item).map((line, index) => `${index === 0 ? "- " : "  "}${line}`),
      );
    }
    if (isMap(value)) {
      if (value.size === 0) return ["{}"];
      return [...value].flatMap(([key, item]) => yamlEntry(key, item));
    }
  }
  return [typeof value === "string" ? yamlText(value) : toJson(value)];
}

function yamlEntry(key: string, item: Value): string[] {
  const lines = yamlLines(item);
  const isBlock =
    typeof item === "object" &&
    item !== null &&
    ((isList(item) && item.length > 0) || (isMap(item) && item.size > 0));
  if (!isBlock) return [`${yamlText(key)}: ${lines[0] ?? ""}`];
  return [`${yamlText(key)}:`, ...lines.map((line) => `  ${line}`)];
}

function yamlText(text: string): string {
  if (PLAIN_TEXT.test(text) && !RESERVED.test(text)) return text;
  // Characters that JSON allows without an escape, but YAML does not (1.2.2 section 5.1).
  return JSON.stringify(text).replace(
    /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

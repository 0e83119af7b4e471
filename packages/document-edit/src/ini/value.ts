import { DocumentEditError } from "../errors.ts";
import type { IniRules } from "./dialect.ts";

/** A parsed value and its length on the line. */
export interface RawValue {
  /** Length of the value, without a comment after it. */
  readonly length: number;
  readonly value: string;
}

/** Reads a value, from the first character after the separator that is not a space or tab. */
export function readValue(raw: string, rules: IniRules): RawValue | undefined {
  if (rules.values === "git") return readGit(raw);
  if (rules.values === "npm") return readNpm(raw);
  const note = rules.inlineComments ? /(?:^|[ \t])[#;]/.exec(raw) : null;
  const value = (note === null ? raw : raw.slice(0, note.index)).trimEnd();
  return { length: value.length, value };
}

/** Prints a value so that parsers read it unchanged. @throws DocumentEditError `unsafe_value` */
export function printValue(key: string, text: string, quoted: boolean, rules: IniRules): string {
  if (text.includes("\0")) throw unsafe(key, "holds NUL");
  if (rules.values === "git") return printGit(key, text, quoted);
  if (rules.values === "npm") return printNpm(text, quoted);
  const lines = text.split("\n");
  for (const [index, line] of lines.entries()) {
    if (line !== line.trim()) throw unsafe(key, "begins or ends with a blank");
    if (index > 0 && (line === "" || /^[#;]/.test(line)))
      throw unsafe(key, "has an empty line or one that is a comment");
    if (rules.inlineComments && /(?:^|\s)[#;]/.test(line))
      throw unsafe(key, "holds what some readers take for a comment");
    if (/[\p{Cc}\u2028\u2029]/u.test(line.replaceAll("\t", ""))) throw unsafe(key, "holds a line break");
  }
  return lines.join(`\n${CONTINUATION}`);
}

/** Indentation of a value's further lines, relative to the key, so that no parser reads them as keys. */
const CONTINUATION = "    ";

/** Reads a value as parse_value in git's config.c: quotes may be anywhere, `#` and `;` outside of them begin a comment. */
function readGit(raw: string): RawValue | undefined {
  let value = "";
  let kept = 0;
  let length = 0;
  let inQuotes = false;
  for (let at = 0; at < raw.length; at++) {
    const char = raw[at] ?? "";
    if (char === '"') {
      inQuotes = !inQuotes;
      length = at + 1;
      kept = value.length;
      continue;
    }
    if (!inQuotes && (char === "#" || char === ";")) break;
    if (char === "\\") {
      const next = raw[at + 1] === "\r" ? raw.slice(at + 1, at + 3) : (raw[at + 1] ?? "");
      const meaning = GIT_ESCAPES[next];
      if (meaning === undefined) return undefined;
      value += meaning;
      at += next.length;
    } else {
      value += char;
    }
    if (inQuotes || !/\s/.test(char)) {
      kept = value.length;
      length = at + 1;
    }
  }
  return inQuotes ? undefined : { length, value: value.slice(0, kept) };
}

const GIT_ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  n: "\n",
  t: "\t",
  b: "\b",
  "\n": "",
  "\r\n": "",
};

function printGit(key: string, text: string, quoted: boolean): string {
  if (text.includes("\r")) throw unsafe(key, "holds a carriage return");
  const isBare = !quoted && !/^\s|\s$|["\\#;\n\t\b]/.test(text) && text !== "";
  if (isBare) return text;
  const escaped = text
    .replace(/["\\]/g, "\\$&")
    .replaceAll("\n", "\\n")
    .replaceAll("\t", "\\t")
    .replaceAll("\b", "\\b");
  return `"${escaped}"`;
}

/**
 * Reads a value as unsafe() in the `ini` package: quoted text is JSON, else `\` escapes `;` and `#`. A single quotation
 * mark counts as quoted.
 */
export function readNpm(raw: string): RawValue {
  const trimmed = raw.trimEnd();
  const isQuoted = /^"(?:[^]*")?$|^'(?:[^]*')?$/.test(trimmed);
  if (isQuoted) {
    const inner = trimmed.startsWith("'") ? trimmed.slice(1, -1) : trimmed;
    try {
      return { length: trimmed.length, value: String(JSON.parse(inner)) };
    } catch {
      return { length: trimmed.length, value: inner };
    }
  }
  const end = /(?<!\\)[;#]/.exec(trimmed)?.index ?? trimmed.length;
  const bare = trimmed.slice(0, end).trimEnd();
  return { length: bare.length, value: bare.replace(/\\([\\;#])/g, "$1") };
}

function printNpm(text: string, quoted: boolean): string {
  const needsQuotes = quoted || text !== text.trim() || /^["'](?:.*["'])?$|[\p{Cc}\u2028\u2029]/u.test(text);
  if (!needsQuotes) return text.replace(/[\\;#]/g, "\\$&");
  // The package's pattern for a line ends at these characters.
  return JSON.stringify(text).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
}

function unsafe(key: string, why: string): DocumentEditError {
  return new DocumentEditError(
    "unsafe_value",
    `the value of ${key} ${why}, which this dialect of ini cannot carry`,
  );
}

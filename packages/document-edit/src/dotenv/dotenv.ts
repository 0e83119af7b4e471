import type { ValueRules } from "../contract.ts";
import { openEntries, type EntriesSyntax, type EntriesText, type Entry } from "../core/entries.ts";
import type { Span } from "../core/mask.ts";
import { lineEnd, nextLine } from "../core/splice.ts";
import type { OpenSyntax } from "../core/syntax.ts";
import { DocumentEditError, unparsable, type Origin } from "../errors.ts";

const KEY = /[A-Za-z_][A-Za-z0-9_.-]*/y;

/** Text that the shell and every dotenv parser read unchanged without quotes. */
const BARE = /^[A-Za-z0-9_.,:/@%+=-]*$/;

/**
 * Opens a dotenv file: `KEY=value` lines, with or without `export`, values with or without quotes. It is read as the POSIX
 * shell does.
 */
export const openDotenv: OpenSyntax = (text, origin) => openEntries(SYNTAX, text, origin);

/**
 * Differences between parsers: python-dotenv replaces `${NAME}` in all values, and reads `\\\\` and `\\'` in single quotes as
 * escapes. The `dotenv` package has no escapes in double quotes, and changes CR.
 */
export const DOTENV_VALUES: Partial<ValueRules> = {
  objection(text) {
    if (text.includes("\r")) return "holds a carriage return, which some readers change";
    if (/\$\{[^}]*\}/.test(text)) return "holds ${…}, which some readers take for another variable";
    if (text.includes("'")) {
      return /["$`\\]/.test(text)
        ? 'holds a single quote together with ", $, ` or \\, which no quotes carry for all readers'
        : undefined;
    }
    return /\\\\|\\$/.test(text)
      ? "ends with a backslash or holds two in a row, which some readers take for an escape"
      : undefined;
  },
};

const SYNTAX: EntriesSyntax = {
  read: readDotenv,
  isList: () => false,
  keepsLineBreaks: true,
  joinsSections: false,
  spacesSections: false,
  printHeader(name) {
    throw new DocumentEditError("unsupported", `dotenv has no sections: ${name} must be text`);
  },
  printKey(key, model) {
    if (!new RegExp(`^${KEY.source}$`).test(key)) {
      throw new DocumentEditError(
        "unsafe_value",
        "a dotenv key holds characters that a variable's name cannot have",
      );
    }
    // `export` of the model is kept. A separator with spaces is not, because the shell does not support it.
    return `${model?.style.startsWith("export") === true ? "export " : ""}${key}=`;
  },
  printValue: (key, value, present, model) => quote(key, value, present ?? model),
  indent: () => "",
  placeFor: () => undefined,
};

/** Quotes a value: in single quotes unless it holds one, or without quotes if the file does so and every parser agrees. */
function quote(key: string, text: string, near: Entry | undefined): string {
  if (/[\r\0]/.test(text)) {
    throw new DocumentEditError(
      "unsafe_value",
      `${key} holds a carriage return or NUL, which dotenv cannot carry`,
    );
  }
  const style = near?.style.at(-1);
  if (style === "=" && BARE.test(text)) return text;
  const isSafeInDouble = !/["$`\\]/.test(text);
  if (style === '"' && isSafeInDouble) return `"${text}"`;
  if (!text.includes("'")) return `'${text}'`;
  return `"${text.replace(/["$`\\]/g, "\\$&")}"`;
}

function readDotenv(text: string, origin: Origin): EntriesText {
  const entries: Entry[] = [];
  const comments: Span[] = [];
  let at = 0;
  while (at < text.length) {
    const end = lineEnd(text, at);
    const start = skipBlanks(text, at);
    if (start >= end) {
      at = nextLine(text, at);
    } else if (text[start] === "#") {
      comments.push({ start, end });
      at = nextLine(text, at);
    } else {
      const entry = readEntry(text, start, end, origin, comments);
      if (entry !== undefined) entries.push(entry);
      at = nextLine(text, entry?.span.end ?? end);
    }
  }
  return { sections: [{ name: undefined, header: { start: 0, end: 0 }, entries }], comments };
}

function readEntry(
  text: string,
  start: number,
  end: number,
  origin: Origin,
  comments: Span[],
): Entry | undefined {
  const prefix = /export[ \t]+(?=[A-Za-z_])/y;
  prefix.lastIndex = start;
  const isExported = prefix.test(text);
  KEY.lastIndex = isExported ? prefix.lastIndex : start;
  const key = KEY.exec(text)?.[0];
  if (key === undefined) throw unparsable(origin, "this is not dotenv: KEY=value was expected", text, start);
  const sign = skipBlanks(text, KEY.lastIndex);
  // `export KEY` exports a variable that is set elsewhere. It has no value to edit.
  if (sign >= end && origin === "existing") return undefined;
  if (text[sign] !== "=") throw unparsable(origin, "this is not dotenv: KEY=value was expected", text, sign);
  const first = skipBlanks(text, sign + 1);
  const isEmpty = first >= end || (text[first] === "#" && first > sign + 1);
  const from = isEmpty ? sign + 1 : first;
  const { value, to } = isEmpty ? { value: "", to: from } : readValue(text, from, end, origin);
  const rest = skipBlanks(text, to);
  if (text[rest] === "#") comments.push({ start: rest, end: lineEnd(text, rest) });
  else if (rest < lineEnd(text, to))
    throw unparsable(origin, "this is not dotenv: text after a value", text, rest);
  const quoteSign = text[from] === "'" || text[from] === '"' ? text[from] : "=";
  return {
    key,
    value,
    span: { start, end: to },
    valueSpan: { start: from, end: to },
    separator: "=",
    style: (isExported ? "export" : "") + quoteSign,
  };
}

function readValue(text: string, from: number, end: number, origin: Origin): { value: string; to: number } {
  const sign = text[from];
  if (sign !== "'" && sign !== '"' && sign !== "`") {
    // A comment begins after a space or tab.
    const note = /[ \t]#/.exec(text.slice(from, end));
    const raw = text.slice(from, note === null ? end : from + note.index).trimEnd();
    return { value: raw, to: from + raw.length };
  }
  let value = "";
  for (let at = from + 1; at < text.length; at++) {
    const char = text[at];
    if (char === sign) return { value, to: at + 1 };
    const next = text[at + 1] ?? "";
    if (sign === '"' && char === "\\" && '"$`\\'.includes(next)) {
      value += next;
      at++;
    } else {
      value += char;
    }
  }
  throw unparsable(origin, "a quote is not closed", text, from);
}

function skipBlanks(text: string, at: number): number {
  while (text[at] === " " || text[at] === "\t") at++;
  return at;
}

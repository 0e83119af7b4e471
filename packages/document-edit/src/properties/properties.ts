import { openEntries, type EntriesSyntax, type EntriesText, type Entry } from "../core/entries.ts";
import type { Span } from "../core/mask.ts";
import { lineEnd, nextLine } from "../core/splice.ts";
import type { OpenSyntax } from "../core/syntax.ts";
import { DocumentEditError, unparsable, type Origin } from "../errors.ts";

/**
 * Opens a Java properties file (java.util.Properties.load). New text is ASCII with `\uXXXX`, so it means the
 * same whether the file is read as ISO 8859-1 or as UTF-8.
 */
export const openProperties: OpenSyntax = (text, origin) => openEntries(SYNTAX, text, origin);

const SYNTAX: EntriesSyntax = {
  read: readProperties,
  isList: () => false,
  joinsSections: false,
  spacesSections: false,
  printHeader(name) {
    throw new DocumentEditError("unsupported", `properties have no sections: ${name} must be text`);
  },
  printKey: (key, model) => escape(key).replace(/[ =:#!]/g, "\\$&") + (model?.separator ?? "="),
  printValue: (_key, value) => escape(value).replace(/^[ =:]/, "\\$&"),
  indent: () => "",
  placeFor: () => undefined,
};

const NAMED: Readonly<Record<string, string>> = {
  "\t": "\\t",
  "\n": "\\n",
  "\r": "\\r",
  "\f": "\\f",
  "\\": "\\\\",
};
const MEANINGS: Readonly<Record<string, string>> = { t: "\t", n: "\n", r: "\r", f: "\f" };

/** Escapes backslashes, control characters and characters that are not ASCII. */
function escape(text: string): string {
  return text.replace(
    /[^\x20-\x5b\x5d-\x7e]/g,
    (char) => NAMED[char] ?? `\\u${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`,
  );
}

function unescape(written: string, text: string, offset: number, origin: Origin): string {
  return written.replace(
    /\\(?:u([0-9A-Fa-f]{4})|(\r\n|[\s\S])[ \t\f]*)/g,
    (match, code: string | undefined, char: string | undefined) => {
      if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
      if (char === "\n" || char === "\r\n" || char === "\r") return "";
      if (char === "u") throw unparsable(origin, "a \\u escape has no four hexadecimal digits", text, offset);
      return (MEANINGS[char ?? ""] ?? char ?? "") + match.slice(1 + (char?.length ?? 0));
    },
  );
}

function readProperties(text: string, origin: Origin): EntriesText {
  const entries: Entry[] = [];
  const comments: Span[] = [];
  for (let at = 0; at < text.length;) {
    const start = skipBlanks(text, at);
    if (text[start] === "#" || text[start] === "!") {
      comments.push({ start, end: lineEnd(text, start) });
      at = nextLine(text, start);
    } else if (start >= lineEnd(text, at)) {
      at = nextLine(text, at);
    } else {
      const end = logicalEnd(text, start);
      entries.push(readEntry(text, start, end, origin));
      at = nextLine(text, end);
    }
  }
  return { sections: [{ name: undefined, header: { start: 0, end: 0 }, entries }], comments };
}

/** End of a logical line. A line that ends with an odd number of backslashes continues on the next line. */
function logicalEnd(text: string, start: number): number {
  for (let at = start; ; at = nextLine(text, at)) {
    const end = lineEnd(text, at);
    const backslashes = /\\*$/.exec(text.slice(at, end))?.[0].length ?? 0;
    if (backslashes % 2 === 0 || end === text.length) return end;
  }
}

function readEntry(text: string, start: number, end: number, origin: Origin): Entry {
  const line = text.slice(start, end);
  const key = /^(?:\\(?:\r\n|[\s\S])|[^\\=: \t\f])*/.exec(line)?.[0] ?? "";
  // A line may also be continued between key and value.
  const separator =
    /^(?:[ \t\f]|\\\r?\n)*(?:[=:](?:[ \t\f]|\\\r?\n)*)?/.exec(line.slice(key.length))?.[0] ?? "";
  const from = start + key.length + separator.length;
  return {
    key: unescape(key, text, start, origin),
    value: unescape(text.slice(from, end), text, from, origin),
    span: { start, end },
    valueSpan: { start: from, end },
    separator: /\n/.test(separator) ? "=" : separator,
    style: "",
  };
}

function skipBlanks(text: string, at: number): number {
  while (text[at] === " " || text[at] === "\t" || text[at] === "\f") at++;
  return at;
}

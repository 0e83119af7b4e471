import {
  openEntries,
  refuseLineBreaks,
  type EntriesSyntax,
  type EntriesText,
  type Entry,
  type Section,
} from "../core/entries.ts";
import type { Span } from "../core/mask.ts";
import { indentAt, lineEnd, nextLine } from "../core/splice.ts";
import type { OpenSyntax } from "../core/syntax.ts";
import { DocumentEditError, unparsable, type Origin } from "../errors.ts";
import type { ValueRules } from "../contract.ts";
import { matchesAll } from "./criteria.ts";
import { LIST_KEYWORDS, RAW_KEYWORDS, keywordOf } from "./keywords.ts";
import { WORD, readWord } from "./words.ts";

/** Indentation of a new block if the file has none, as in the examples of ssh_config(5). */
const DEFAULT_INDENT = "    ";

/**
 * Opens an ssh_config(5) file. The criteria identify a block (`Host a *.b`, `Match user x`), with runs of spaces
 * reduced to one. Values are the text after the keyword, including quotes. `Include` is an ordinary option and not followed.
 */
export const openSshConfig: OpenSyntax = (text, origin) => openEntries(SYNTAX, text, origin);

export const SSH_CONFIG_VALUES: Partial<ValueRules> = {
  objection: (text) =>
    /[^\P{Cc}\t]/u.test(text) ? "holds a control character, which ssh_config cannot carry" : undefined,
  fill(key, value, put) {
    if (RAW_KEYWORDS.has(key)) return put(value);
    return value.replace(WORD, (word) => {
      const filled = put(word);
      return filled === word ? word : printWord(put(readWord(word)));
    });
  },
};

function printWord(text: string): string {
  if (/^[^\s"'\\#=][^\s"'\\]*$/.test(text)) return text;
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/** True if ssh can read the value as arguments, none of them empty. ssh refuses the complete file for one bad value. */
function isReadable(value: string): boolean {
  const words = value.match(WORD) ?? [];
  return value.replace(WORD, "").trim() === "" && words.every((word) => readWord(word) !== "");
}

const SYNTAX: EntriesSyntax = {
  read: readSshConfig,
  isList: (key) => LIST_KEYWORDS.has(key),
  joinsSections: false,
  spacesSections: true,
  printHeader(name) {
    refuseLineBreaks("a block's criteria", name);
    if (!/^(?:Host|Match) [^\s#]/.test(name) || criteriaOf(name) !== name) {
      throw new DocumentEditError("unsafe_value", "a block's criteria are not as ssh_config writes them");
    }
    return name;
  },
  printKey(key, model) {
    if (!/^[A-Za-z0-9]+$/.test(key) || key === "Host" || key === "Match") {
      throw new DocumentEditError("unsafe_value", "a keyword holds characters that ssh_config cannot carry");
    }
    return key + (model?.separator ?? " ");
  },
  printValue(key, text) {
    refuseLineBreaks(key, text);
    const isWhole = valueLength(key, text) === text.length && text !== "" && text.trim() === text;
    if (!isWhole || (!RAW_KEYWORDS.has(key) && !isReadable(text))) {
      throw new DocumentEditError(
        "unsafe_value",
        `the value of ${key} is empty, has blanks around it, an open quote or a comment, for which ssh refuses the file`,
      );
    }
    return text;
  },
  indent(section, models, text) {
    if (section === undefined) return "";
    const indented = models.find((entry) => indentAt(text, entry.span.start) !== "");
    return indented === undefined ? DEFAULT_INDENT : indentAt(text, indented.span.start);
  },
  // The first value counts for ssh, so a new block must be before a block that matches every host.
  placeFor: (_name, sections) => sections.find(({ name }) => name !== undefined && matchesAll(name)),
};

function criteriaOf(written: string): string {
  return written.replace(/"[^"]*"|[ \t]+/g, (match) => (match.startsWith('"') ? match : " ")).trim();
}

/** Reads a file into its blocks. */
export function readSshConfig(text: string, origin: Origin): EntriesText {
  const comments: Span[] = [];
  let entries: Entry[] = [];
  const sections: Section[] = [{ name: undefined, header: { start: 0, end: 0 }, entries }];
  for (let at = 0; at < text.length; at = nextLine(text, at)) {
    const start = at + indentAt(text, at).length;
    const end = lineEnd(text, at);
    if (start >= end) continue;
    if (text[start] === "#") {
      comments.push({ start, end });
      continue;
    }
    const line = text.slice(start, end);
    const match = /^([A-Za-z0-9]+)([ \t]*=[ \t]*|[ \t]+)(?=\S)/.exec(line);
    const [head = "", word = "", separator = ""] = match ?? [];
    if (match === null)
      throw unparsable(origin, "this is not ssh_config: a keyword and its value were expected", text, start);
    const key = keywordOf(word);
    const from = start + head.length;
    const length = valueLength(key, line.slice(head.length));
    if (length === undefined) throw unparsable(origin, "a quote is not closed", text, from);
    const to = from + length;
    if (text.slice(to, end).trim() !== "")
      comments.push({ start: to + text.slice(to, end).search(/\S/), end });
    if (key === "Host" || key === "Match") {
      entries = [];
      sections.push({
        name: criteriaOf(`${key} ${text.slice(from, to)}`),
        header: { start, end: to },
        entries,
      });
    } else {
      const value = text.slice(from, to);
      entries.push({
        key,
        value,
        span: { start, end: to },
        valueSpan: { start: from, end: to },
        separator,
        style: "",
      });
    }
  }
  return { sections, comments };
}

/** Length of a value without the comment after it. Undefined if a quote is open. A command is the rest of the line. */
function valueLength(key: string, text: string): number | undefined {
  if (RAW_KEYWORDS.has(key)) return text.trimEnd().length;
  let inQuotes = false;
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? "";
    if (char === "\\" && /["'\\]/.test(text[at + 1] ?? "")) {
      at++;
      length = at + 1;
      continue;
    }
    if (char === '"') inQuotes = !inQuotes;
    // A single quote without a closing quote was an ordinary character before OpenSSH 8.7.
    if (char === "'" && !inQuotes && text.includes("'", at + 1)) {
      at = text.indexOf("'", at + 1);
      length = at + 1;
      continue;
    }
    if (!inQuotes && char === "#" && (at === 0 || /[ \t]/.test(text[at - 1] ?? ""))) break;
    if (!/[ \t]/.test(char)) length = at + 1;
  }
  return inQuotes ? undefined : length;
}

import type { IniDialect, ValueRules } from "../contract.ts";
import {
  openEntries,
  type EntriesSyntax,
  type EntriesText,
  type Entry,
  type Section,
} from "../core/entries.ts";
import type { Span } from "../core/mask.ts";
import { indentAt, lineEnd, nextLine } from "../core/splice.ts";
import type { OpenSyntax } from "../core/syntax.ts";
import { DocumentEditError, unparsable, type Origin } from "../errors.ts";
import { INI_RULES, type IniRules } from "./dialect.ts";
import { printValue, readNpm, readValue } from "./value.ts";

/** Opens an ini file of a dialect. */
export function openIni(dialect: IniDialect): OpenSyntax {
  const syntax = iniSyntax(INI_RULES[dialect]);
  return (text, origin) => openEntries(syntax, text, origin);
}

/** Rules of a dialect's parsers for values. */
export function iniValues(dialect: IniDialect): Partial<ValueRules> {
  const quotes = INI_RULES[dialect].values !== "raw";
  if (dialect === "generic") {
    return {
      quotes,
      objection: (text) =>
        text.includes("%")
          ? "holds a %, which Python's configparser takes for an interpolation (not with dialect: aws)"
          : undefined,
    };
  }
  if (dialect === "npmrc") {
    return {
      quotes,
      objection: (text) =>
        /\$\{[^}]*\}/.test(text) ? "holds ${…}, which npm takes for an environment variable" : undefined,
      otherType: (text) =>
        /^(?:true|false|null)$/.test(text)
          ? "is a word that npm takes for a boolean or null, even in quotes"
          : undefined,
    };
  }
  return { quotes };
}

function iniSyntax(rules: IniRules): EntriesSyntax {
  return {
    read: (text, origin) => new IniReader(text, origin, rules).read(),
    isList: (key) => rules.isList(key),
    matchesAnyCase: rules.matchesAnyCase,
    joinsSections: rules.joinsSections,
    spacesSections: rules.spacesSections,
    printHeader: (name) => printHeader(name, rules),
    printKey(key, model) {
      const isUnreadable =
        rules.values === "git" ? !/^[a-z][a-z0-9-]*$/.test(key) : !/^[^\s[#;]\P{Cc}*$/u.test(key);
      if (
        isUnreadable ||
        isOtherForNpm(key, rules) ||
        /\s$/.test(key) ||
        rules.separators.split("").some((sign) => key.includes(sign))
      ) {
        throw new DocumentEditError(
          "unsafe_value",
          "a key holds characters that this dialect of ini cannot carry",
        );
      }
      return key + (model?.separator ?? rules.separator);
    },
    printValue: (key, value, present) => printValue(key, value, present?.style === '"', rules),
    indent(section, models, text) {
      const model = models.find((entry) => entry.separator !== "");
      if (section === undefined) return "";
      return model === undefined ? rules.indent : indentAt(text, model.span.start);
    },
    placeFor: () => undefined,
  };
}

/** Prints `[section]`, or git's `[section "sub"]`. */
function printHeader(name: string, rules: IniRules): string {
  const dot = name.indexOf(".");
  const isGit = rules.values === "git";
  if (
    /\p{Cc}/u.test(name) ||
    (!isGit && name.includes("]")) ||
    isOtherForNpm(name, rules) ||
    (isGit && !/^[A-Za-z0-9-]+(?:\.|$)/.test(name))
  ) {
    throw new DocumentEditError(
      "unsafe_value",
      "a section's name holds characters that this dialect of ini cannot carry",
    );
  }
  if (!isGit || dot === -1) return `[${name}]`;
  return `[${name.slice(0, dot)} "${name.slice(dot + 1).replace(/["\\]/g, "\\$&")}"]`;
}

/** Whether npm reads another name. It reads names like values, so quotes and comment signs change a name. */
function isOtherForNpm(name: string, rules: IniRules): boolean {
  return rules.values === "npm" && (readNpm(name).value !== name || /[\u2028\u2029]/.test(name));
}

class IniReader {
  readonly #text: string;
  readonly #origin: Origin;
  readonly #rules: IniRules;
  readonly #comments: Span[] = [];
  readonly #sections: (Section & { entries: Entry[] })[] = [
    { name: undefined, header: { start: 0, end: 0 }, entries: [] },
  ];

  constructor(text: string, origin: Origin, rules: IniRules) {
    this.#text = text;
    this.#origin = origin;
    this.#rules = rules;
  }

  read(): EntriesText {
    let at = 0;
    while (at < this.#text.length) at = this.#line(at);
    return { sections: this.#sections, comments: this.#comments };
  }

  /** Reads a line and its continuation lines. Returns the offset of the next line. */
  #line(at: number): number {
    const text = this.#text;
    const start = at + indentAt(text, at).length;
    const end = lineEnd(text, at);
    if (start >= end) return nextLine(text, at);
    if (text[start] === "#" || text[start] === ";") {
      this.#comments.push({ start, end });
      return nextLine(text, at);
    }
    if (text[start] !== "[") return nextLine(text, this.#entry(start, end));
    const behind = this.#header(start, end);
    const rest = skipBlanks(text, behind, end);
    if (rest >= end) return nextLine(text, end);
    // For npm, a line with text after the bracket is a key.
    if (this.#rules.values !== "npm" && (text[rest] === "#" || text[rest] === ";")) {
      this.#comments.push({ start: rest, end });
      return nextLine(text, end);
    }
    if (this.#rules.values !== "git") throw this.#broken("text after a section's name", rest);
    return nextLine(text, this.#entry(rest, end));
  }

  #header(start: number, end: number): number {
    const line = this.#text.slice(start, end);
    let name: string | undefined;
    let length = 0;
    if (this.#rules.values === "git") {
      const match = /^\[[ \t]*([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?[ \t]*\]/.exec(line);
      length = match?.[0].length ?? 0;
      const sub = match?.[2]?.replace(/\\(.)/g, "$1");
      if (match?.[1] !== undefined) name = match[1].toLowerCase() + (sub === undefined ? "" : `.${sub}`);
    } else {
      const match = /^\[([^\]]+)\]/.exec(line);
      length = match?.[0].length ?? 0;
      name = match?.[1];
    }
    if (name === undefined) throw this.#broken("a section's name was expected", start);
    this.#sections.push({ name, header: { start, end: start + length }, entries: [] });
    return start + length;
  }

  /** Reads an entry. Returns the offset of its end. */
  #entry(start: number, end: number): number {
    const text = this.#text;
    const rules = this.#rules;
    let sign = start;
    while (sign < end && !rules.separators.includes(text[sign] ?? "")) {
      if (rules.values === "git" && /[#;]/.test(text[sign] ?? "")) break;
      sign++;
    }
    const hasSign = sign < end && rules.separators.includes(text[sign] ?? "");
    if (!hasSign && !rules.bareKeys)
      throw this.#broken("this is not ini: a key and its value were expected", start);
    const written = text.slice(start, sign).trimEnd();
    if (written === "" || (rules.values === "git" && !/^[A-Za-z][A-Za-z0-9-]*$/.test(written))) {
      throw this.#broken("this is not ini: a key was expected", start);
    }
    const name = rules.values === "npm" ? readNpm(written).value : written;
    const key = rules.foldsCase ? name.toLowerCase() : name;
    const keyEnd = start + written.length;
    const entries = this.#sections.at(-1)?.entries;
    if (!hasSign) {
      if (sign < end) this.#comments.push({ start: sign, end });
      const nothing = { start: keyEnd, end: keyEnd };
      entries?.push({
        key,
        value: "true",
        span: { start, end: keyEnd },
        valueSpan: nothing,
        separator: "",
        style: "",
      });
      return end;
    }
    const from = skipBlanks(text, sign + 1, end);
    const { value, to, behind } = this.#value(start, from, end);
    entries?.push({
      key,
      value,
      span: { start, end: Math.max(to, keyEnd) },
      valueSpan: { start: from, end: Math.max(to, from) },
      // Without a value, spaces at the end of the line do not belong to the separator.
      separator: from >= end ? text.slice(keyEnd, sign + 1) : text.slice(keyEnd, from),
      style: rules.values !== "raw" && text[from] === '"' ? '"' : "",
    });
    return behind;
  }

  #value(start: number, from: number, end: number): { value: string; to: number; behind: number } {
    const text = this.#text;
    let last = end;
    if (this.#rules.values === "git") {
      // A backslash at the end of a line continues the value on the next line.
      while (last < text.length && /(?:^|[^\\])(?:\\\\)*\\$/.test(text.slice(from, last))) {
        last = lineEnd(text, nextLine(text, last));
      }
    }
    const read = readValue(text.slice(from, last), this.#rules);
    if (read === undefined) throw this.#broken("a value's quotes or escapes are broken", from);
    const to = from + read.length;
    const note = skipBlanks(text, to, last);
    if (note < last) this.#comments.push({ start: note, end: last });
    if (!this.#rules.continues) return { value: read.value, to, behind: last };
    return this.#continued(start, read.value, to, last);
  }

  /** Adds lines that are indented deeper than the key, as configparser does. Empty lines and comments do not end the value. */
  #continued(
    start: number,
    first: string,
    to: number,
    end: number,
  ): { value: string; to: number; behind: number } {
    const text = this.#text;
    const depth = indentAt(text, start).length;
    const result = { value: first, to, behind: end };
    const comments: Span[] = [];
    let empty = "";
    for (let at = nextLine(text, end); at < text.length; at = nextLine(text, at)) {
      const from = at + indentAt(text, at).length;
      const stop = lineEnd(text, at);
      if (from >= stop) {
        empty += "\n";
        continue;
      }
      if (text[from] === "#" || text[from] === ";") {
        comments.push({ start: from, end: stop });
        continue;
      }
      if (from - at <= depth) break;
      const read = readValue(text.slice(from, stop), this.#rules);
      this.#comments.push(...comments.splice(0));
      result.value += `${empty}\n${read?.value ?? ""}`;
      result.to = from + (read?.length ?? 0);
      result.behind = stop;
      empty = "";
      const note = skipBlanks(text, result.to, stop);
      if (note < stop) this.#comments.push({ start: note, end: stop });
    }
    return result;
  }

  #broken(problem: string, offset: number): DocumentEditError {
    return unparsable(this.#origin, problem, this.#text, offset);
  }
}

function skipBlanks(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && (text[at] === " " || text[at] === "\t")) at++;
  return at;
}

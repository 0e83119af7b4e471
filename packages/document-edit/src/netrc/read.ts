import type { Span } from "../core/mask.ts";
import { lineEnd } from "../core/splice.ts";
import { errorAt, unparsable, type DocumentEditError, type Origin } from "../errors.ts";

/** A word of a netrc file: its bytes, and its text without quotes and escapes. */
export interface Token extends Span {
  readonly value: string;
}

/** Fields with a value. `user` is an old name of `login` that some parsers support. */
export const NETRC_FIELDS = ["password", "account"] as const;

/** One entry: `machine` or `default` with its fields. */
export interface NetrcEntry {
  /** Keyword at the beginning. */
  readonly keyword: Token;
  /** Machine. Undefined for `default`. */
  readonly machine: Token | undefined;
  readonly login: Token | undefined;
  /** Keywords and values of password and account. */
  readonly fields: ReadonlyMap<string, { readonly keyword: Token; readonly value: Token }>;
  /** End of its last word, without macros. */
  readonly end: number;
  readonly hasMacro: boolean;
}

export interface NetrcText {
  readonly entries: readonly NetrcEntry[];
  readonly comments: readonly Span[];
  /** Lines of macros. */
  readonly macros: readonly Span[];
}

/**
 * Reads a netrc file by the common rules of curl (lib/netrc.c) and Python (Lib/netrc.py): words are separated by white space, a
 * word may be in double quotes with `\\` escapes, `#` in place of a keyword begins a comment, `macdef` ends at
 * the next empty line.
 */
export function readNetrc(text: string, origin: Origin): NetrcText {
  return new NetrcReader(text, origin).read();
}

interface Draft {
  keyword: Token;
  machine: Token | undefined;
  login: Token | undefined;
  fields: Map<string, { keyword: Token; value: Token }>;
  end: number;
  hasMacro: boolean;
}

class NetrcReader {
  readonly #text: string;
  readonly #origin: Origin;
  readonly #entries: Draft[] = [];
  readonly #comments: Span[] = [];
  readonly #macros: Span[] = [];
  #at = 0;

  constructor(text: string, origin: Origin) {
    this.#text = text;
    this.#origin = origin;
  }

  read(): NetrcText {
    for (let word = this.#next(); word !== undefined; word = this.#next()) {
      if (this.#text[word.start] === "#") {
        const end = lineEnd(this.#text, word.start);
        this.#comments.push({ start: word.start, end });
        this.#at = end;
      } else {
        this.#keyword(word);
      }
    }
    return { entries: this.#entries, comments: this.#comments, macros: this.#macros };
  }

  #keyword(word: Token): void {
    const entry = this.#entries.at(-1);
    if (word.value === "machine" || word.value === "default") {
      const machine = word.value === "machine" ? this.#value(word) : undefined;
      if (machine?.value === "") throw this.#broken("a machine has no name", word);
      const end = machine?.end ?? word.end;
      this.#entries.push({
        keyword: word,
        machine,
        login: undefined,
        fields: new Map(),
        end,
        hasMacro: false,
      });
    } else if (word.value === "macdef") {
      this.#value(word);
      this.#macro();
      if (entry !== undefined) entry.hasMacro = true;
    } else if (entry !== undefined && (word.value === "login" || word.value === "user")) {
      if (entry.login !== undefined) throw this.#twice(word);
      entry.login = this.#value(word);
      entry.end = entry.login.end;
    } else if (entry !== undefined && (NETRC_FIELDS as readonly string[]).includes(word.value)) {
      if (entry.fields.has(word.value)) throw this.#twice(word);
      const value = this.#value(word);
      entry.fields.set(word.value, { keyword: word, value });
      entry.end = value.end;
    } else {
      throw this.#broken("this is not netrc: a keyword was expected", word);
    }
  }

  #value(keyword: Token): Token {
    const token = this.#next();
    if (token === undefined) throw this.#broken("this is not netrc: a value is missing", keyword);
    return token;
  }

  /** Skips a macro: the rest of the line and all lines up to an empty one. */
  #macro(): void {
    const start = lineEnd(this.#text, this.#at);
    const blank = /\r?\n\r?\n/g;
    blank.lastIndex = start;
    this.#at = blank.exec(this.#text) === null ? this.#text.length : blank.lastIndex;
    this.#macros.push({ start, end: this.#at });
  }

  #next(): Token | undefined {
    const text = this.#text;
    let at = this.#at;
    while (isBlankChar(text[at])) at++;
    if (at >= text.length) return undefined;
    const start = at;
    if (text[at] !== '"') {
      while (at < text.length && !isBlankChar(text[at])) at++;
      this.#at = at;
      return { start, end: at, value: text.slice(start, at) };
    }
    let value = "";
    for (at++; text[at] !== '"'; at++) {
      const char = text[at];
      if (char === undefined || char === "\n")
        throw this.#broken("a quote is not closed", { start, end: at, value });
      if (char !== "\\") {
        value += char;
        continue;
      }
      at++;
      const escaped = text[at] ?? "";
      value += ESCAPES[escaped] ?? escaped;
    }
    this.#at = at + 1;
    return { start, end: at + 1, value };
  }

  #broken(problem: string, token: Token): DocumentEditError {
    return unparsable(this.#origin, problem, this.#text, token.start);
  }

  #twice(token: Token): DocumentEditError {
    const problem = "a field occurs twice in one entry";
    return this.#origin === "content"
      ? unparsable("content", problem, this.#text, token.start)
      : errorAt("unsupported", problem, this.#text, token.start);
  }
}

/** curl's escapes in quotes. The escape of any other character is the character itself. */
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

function isBlankChar(char: string | undefined): boolean {
  return char === " " || char === "\t" || char === "\n" || char === "\r";
}

import { KEYWORDS, type Token, type TokenKind } from "./token.ts";

/** Reports a problem at a position of the text. */
export type Fail = (problem: string, offset: number) => never;

const OPEN = "{{";
const CLOSE = "}}";
/** `{{- ` and ` -}}`: the space belongs to the marker. */
const TRIM_AFTER_OPEN = /-[ \t\r\n]/y;
const CLOSE_HERE = /(?:[ \t\r\n]-)?\}\}/y;
const COMMENT = "/*";
const COMMENT_END = "*/";
const BLANKS = " \t\r\n";
const SPACE = /[ \t\r\n]+/y;
const WORD = /[\p{L}\p{Nd}_]+/uy;
/** Text that may follow a name. */
const TERMINATOR = /[ \t\r\n.,|:()]|\}\}|$/y;
const STRING = /"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"/y;
const RAW_STRING = /`[^`]*`/y;
const CHAR = /'(?:[^'\\\n]|\\[^\n])*'/y;
// Go's scanNumber: it accepts text in the form of a number. The parser reads the number.
const NUMBER =
  /[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?|0[oO][0-7_]*|0[bB][01_]*|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)/y;

/**
 * Splits a template into tokens, as the lexer of Go's text/template/parse does. It drops comments and trimmed space.
 * It runs in linear time: each step reads at least one character.
 */
export function lex(text: string, fail: Fail): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  let depth = 0;

  function match(pattern: RegExp): string | undefined {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  }

  function emit(kind: TokenKind, length: number): void {
    tokens.push({ kind, text: text.slice(at, at + length), offset: at });
    at += length;
  }

  function emitText(end: number, trim: boolean): void {
    let last = end;
    if (trim) while (last > at && BLANKS.includes(text.charAt(last - 1))) last--;
    if (last > at) tokens.push({ kind: "text", text: text.slice(at, last), offset: at });
    at = end;
  }

  /** Skips `}}` or ` -}}`. The latter also skips the space after it. */
  function close(closing: string): void {
    tokens.push({ kind: "close", text: CLOSE, offset: at });
    passClose(closing);
  }

  function passClose(closing: string): void {
    at += closing.length;
    if (closing !== CLOSE) at += match(SPACE)?.length ?? 0;
  }

  function comment(): void {
    const start = at;
    const end = text.indexOf(COMMENT_END, at + COMMENT.length);
    if (end === -1) fail("the comment does not end", start);
    at = end + COMMENT_END.length;
    const closing = match(CLOSE_HERE);
    if (closing === undefined) fail("a comment must fill its action: }} must follow */", at);
    passClose(closing);
  }

  function name(kind: "field" | "variable", alone: "dot" | "variable"): void {
    const start = at;
    at++;
    const word = match(WORD) ?? "";
    at += word.length;
    if (match(TERMINATOR) === undefined) fail("unexpected character in a name", at);
    at = start;
    emit(word === "" ? alone : kind, 1 + word.length);
  }

  function nameOrKeyword(found: string): void {
    const start = at;
    at += found.length;
    if (match(TERMINATOR) === undefined) fail("unexpected character in a name", at);
    at = start;
    if (KEYWORDS.has(found)) emit("keyword", found.length);
    else emit(found === "true" || found === "false" ? "bool" : "identifier", found.length);
  }

  function quoted(kind: TokenKind, pattern: RegExp, problem: string): void {
    const found = match(pattern);
    if (found === undefined) fail(problem, at);
    emit(kind, found.length);
  }

  function number(): void {
    const found = match(NUMBER) ?? "";
    const start = at;
    at += found.length;
    if (found === "" || match(WORD) !== undefined) fail("not a number", start);
    at = start;
    emit("number", found.length);
  }

  function inside(): void {
    const character = text[at];
    switch (character) {
      case undefined:
        return fail("the action does not end", at);
      case "=":
        return emit("assign", 1);
      case "|":
        return emit("pipe", 1);
      case ":":
        if (text[at + 1] !== "=") fail("expected :=", at);
        return emit("declare", 2);
      case '"':
        return quoted("string", STRING, "the text in quotes does not end");
      case "`":
        return quoted("string", RAW_STRING, "the text in backquotes does not end");
      case "'":
        return quoted("char", CHAR, "the character constant does not end");
      case "$":
        return name("variable", "variable");
      case "(":
        depth++;
        return emit("left paren", 1);
      case ")":
        depth--;
        if (depth < 0) fail("a right parenthesis without a left one", at);
        return emit("right paren", 1);
      default:
    }
    if (character === "." && !/[0-9]/.test(text[at + 1] ?? "")) return name("field", "dot");
    if (/[-+.0-9]/.test(character)) return number();
    const found = match(WORD);
    if (found !== undefined) return nameOrKeyword(found);
    if (!/[!-~]/.test(character)) fail("unexpected character in an action", at);
    return emit("character", 1);
  }

  function action(): void {
    const closing = match(CLOSE_HERE);
    if (closing !== undefined) {
      if (depth > 0) fail("a left parenthesis without a right one", at);
      return close(closing);
    }
    const space = match(SPACE);
    if (space === undefined) return inside();
    // The last space may belong to a closing trim marker.
    const before = at;
    at += space.length - 1;
    const trims = match(CLOSE_HERE) !== undefined;
    at = before;
    const length = trims ? space.length - 1 : space.length;
    if (length > 0) return emit("space", length);
    return undefined;
  }

  for (;;) {
    const open = text.indexOf(OPEN, at);
    if (open === -1) break;
    TRIM_AFTER_OPEN.lastIndex = open + OPEN.length;
    const trim = TRIM_AFTER_OPEN.test(text);
    emitText(open, trim);
    const body = open + OPEN.length + (trim ? 2 : 0);
    if (text.startsWith(COMMENT, body)) {
      at = body;
      comment();
      continue;
    }
    tokens.push({ kind: "open", text: OPEN, offset: open });
    at = body;
    depth = 0;
    while (tokens.at(-1)?.kind !== "close") action();
  }
  emitText(text.length, false);
  tokens.push({ kind: "end of text", text: "", offset: text.length });
  return tokens;
}

/**
 * Kinds of tokens. `space` is kept, because it separates arguments: `.a .b` are two, `.a.b` is one.
 * `character` is any other printable character, such as a comma. The parser decides where it is allowed.
 */
export type TokenKind =
  | "text"
  | "open"
  | "close"
  | "space"
  | "identifier"
  | "keyword"
  | "field"
  | "dot"
  | "variable"
  | "bool"
  | "number"
  | "char"
  | "string"
  | "pipe"
  | "left paren"
  | "right paren"
  | "declare"
  | "assign"
  | "character"
  | "end of text";

export interface Token {
  readonly kind: TokenKind;
  /** Text as written. For kind `text`, the rest after trimming. */
  readonly text: string;
  /** Position in the template, in UTF-16 code units. */
  readonly offset: number;
}

export const KEYWORDS: ReadonlySet<string> = new Set([
  "block",
  "break",
  "continue",
  "define",
  "else",
  "end",
  "if",
  "nil",
  "range",
  "template",
  "with",
]);

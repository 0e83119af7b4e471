/**
 * What a template's text is made of. `space` is kept, since it separates arguments: `.a .b` are two, `.a.b` is one.
 * `character` is any other printable one (a comma, say); the parser says where it may stand.
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
  /** As written; of `text` what is left after trimming. */
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

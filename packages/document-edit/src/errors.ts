import { AppError } from "@devplat/base";

/**
 * - `unparsable_existing`: the file on disk does not have this format. It must not be changed.
 * - `unparsable_content`: the rendered content does not have this format.
 * - `unsupported`: the edit cannot be made surgically (a managed key behind an alias, a duplicate key, …).
 * - `unsafe_value`: the format cannot represent a value (such as a line break in netrc).
 */
export type DocumentEditErrorCode =
  | "unparsable_existing"
  | "unparsable_content"
  | "unsupported"
  | "unsafe_value";

/** Error of this package. It has line, column and key path, and never quotes the document. */
export class DocumentEditError extends AppError<DocumentEditErrorCode> {
  /** Line and column in the existing file or in the content, from 1. 0: there is no place. */
  readonly line: number;
  readonly column: number;

  constructor(
    code: DocumentEditErrorCode,
    message: string,
    place: { line?: number; column?: number; cause?: unknown } = {},
  ) {
    super(code, message, { cause: place.cause });
    this.line = place.line ?? 0;
    this.column = place.column ?? 0;
  }
}

/** Origin of a text. The error tells who must repair it. */
export type Origin = "existing" | "content";

/** An error at an offset of a text. The message has the place and the origin of the text, and never quotes it. */
export function errorAt(
  code: DocumentEditErrorCode,
  problem: string,
  text: string,
  offset: number,
): DocumentEditError {
  const before = text.slice(0, offset);
  const line = before.split("\n").length;
  const column = offset - (before.lastIndexOf("\n") + 1) + 1;
  const where = code === "unparsable_content" ? "rendered template" : "file";
  return new DocumentEditError(code, `${problem} (line ${line}, column ${column} of the ${where})`, {
    line,
    column,
  });
}

/** Error for a text that does not have its format. `problem` is never the message of a parser. */
export function unparsable(origin: Origin, problem: string, text: string, offset: number): DocumentEditError {
  return errorAt(origin === "existing" ? "unparsable_existing" : "unparsable_content", problem, text, offset);
}

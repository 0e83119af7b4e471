import { AppError } from "@devplat/base";

/**
 * - `unparsable_existing`: the file on disk is not of this format; it must be left as it is.
 * - `unparsable_content`: the rendered content is not of this format.
 * - `unsupported`: the edit cannot be made surgically (a managed key behind an alias, a duplicate key, …).
 * - `unsafe_value`: a value cannot be carried by the format (a line break in netrc, say).
 */
export type DocumentEditErrorCode =
  | "unparsable_existing"
  | "unparsable_content"
  | "unsupported"
  | "unsafe_value";

/** Never quotes the document: line, column and key path only. */
export class DocumentEditError extends AppError<DocumentEditErrorCode> {
  /** 1-based place in the existing file or in the content, 0 where there is none. */
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

/** Which text is being read: it decides who is told to repair it. */
export type Origin = "existing" | "content";

/** An error at an offset of a text; the message gets the place, names which text it is, and never quotes it. */
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

/** The text is not of its format. `problem` is ours, never a parser's message. */
export function unparsable(origin: Origin, problem: string, text: string, offset: number): DocumentEditError {
  return errorAt(origin === "existing" ? "unparsable_existing" : "unparsable_content", problem, text, offset);
}

/**
 * What the caller of a failed action should do next. Retry code asks the error; it never parses a message.
 * - `retry`: the same call may succeed later (a network fault, 429, 5xx).
 * - `next`: this source does not have it, ask the next one.
 * - `final`: nothing but a change by somebody helps.
 */
export type Remedy = "retry" | "next" | "final";

/** Options of {@link AppError}. */
export interface AppErrorOptions {
  /** One sentence that says what the user can do about it. */
  readonly hint?: string;
  /** Default `final`. */
  readonly remedy?: Remedy;
  readonly cause?: unknown;
}

/**
 * The base of every error that a user or a caller is meant to see. Each package declares a closed union of codes
 * and a subclass with typed data; callers match on `code`, never on the message.
 *
 * A message names the action, quotes the subject, and then says what was found. It never holds a secret, nor the
 * text of a parser or validator of others (those quote their input).
 */
export class AppError<Code extends string = string> extends Error {
  readonly code: Code;
  readonly hint: string | undefined;
  readonly remedy: Remedy;

  constructor(code: Code, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.hint = options.hint;
    this.remedy = options.remedy ?? "final";
  }
}

/** The `code` of a Node system error (`ENOENT`, `EADDRINUSE`, …), or undefined for any other value. */
export function systemCode(error: unknown): string | undefined {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return undefined;
}

/** What to print of a thrown value: its message, and nothing else. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

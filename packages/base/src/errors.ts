/**
 * Advice for the caller of a failed action. Code that retries reads it, and never parses a message.
 * - `retry`: the same call may succeed later (a network error, 429, 5xx).
 * - `next`: this source does not have it. Ask the next source.
 * - `final`: the call fails until somebody changes something.
 */
export type Remedy = "retry" | "next" | "final";

/** Options of {@link AppError}. */
export interface AppErrorOptions {
  /** One sentence: how the user can repair it. */
  readonly hint?: string;
  /** Default `final`. */
  readonly remedy?: Remedy;
  readonly cause?: unknown;
}

/**
 * Base of every error that a user or a caller sees. Each package declares a closed union of codes
 * and a subclass with typed data. Callers match on `code`, never on the message.
 *
 * A message names the action, quotes the subject, and gives the reason. It never holds a secret. It never holds the
 * text of another parser or validator, because that may quote its input.
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

/** Message of a thrown value, for output. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

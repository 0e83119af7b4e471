import { GitStoreError, type GitStoreErrorCode, type GitStoreErrorDetails } from "../errors.ts";

/** An error in a form for messages between threads. Structured cloning would drop its class and fields. */
export interface Failure {
  readonly code: GitStoreErrorCode | undefined;
  readonly name: string;
  readonly message: string;
  readonly details: GitStoreErrorDetails;
  /** System error code such as `ENOSPC`. */
  readonly systemCode: string | undefined;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof GitStoreError) {
    const { code, name, message, details } = error;
    return { code, name, message, details, systemCode: undefined };
  }
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  const code = error instanceof Error && "code" in error ? String(error.code) : undefined;
  return { code: undefined, name, message, details: {}, systemCode: code };
}

export function errorOf(failure: Failure): Error {
  if (failure.code !== undefined) return new GitStoreError(failure.code, failure.message, failure.details);
  const error = new Error(failure.message);
  error.name = failure.name;
  return failure.systemCode === undefined ? error : Object.assign(error, { code: failure.systemCode });
}

/** Adds the offset of the pack's entry to an error. */
export function atOffset(error: unknown, offset: number): unknown {
  if (!(error instanceof GitStoreError) || error.details.offset !== undefined) return error;
  return new GitStoreError(
    error.code,
    `${error.message} (entry at offset ${offset})`,
    { ...error.details, offset },
    { cause: error.cause },
  );
}

/** Error inside a run that was stopped. The caller of the run gets the reason of its signal instead. */
export function abortedError(): Error {
  const error = new Error("indexing was stopped");
  error.name = "AbortError";
  return error;
}

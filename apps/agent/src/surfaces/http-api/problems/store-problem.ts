import { SecretStoreError } from "@devplat/secret-store";
import { PROBLEMS, type Problem } from "./problem.ts";

/** The problem for an error of the secrets store; undefined for another error. */
export function storeProblem(error: unknown): Problem | undefined {
  if (!(error instanceof SecretStoreError)) return undefined;
  switch (error.code) {
    case "unauthenticated":
      return PROBLEMS.notSignedIn;
    case "denied":
      return PROBLEMS.storeDenied;
    case "not_found":
      return PROBLEMS.nothingStored;
    case "version_conflict":
      return PROBLEMS.stale;
    case "bad_path":
      // Names the path and the rule that it breaks.
      return withHint({ detail: `${error.message}.`, code: "bad_path" }, error.hint);
    case "too_large":
      return withHint(
        { detail: "The secret is larger than 1 MiB, or more than the store takes.", code: "body_too_large" },
        error.hint,
      );
    case "unsupported_number":
      return withHint(
        { detail: "The store cannot keep a number of this secret as it is.", code: "unsupported_number" },
        error.hint,
      );
    case "unsupported_text":
      return withHint(
        { detail: "The store cannot keep a text of this secret as it is.", code: "unsupported_text" },
        error.hint,
      );
    case "refused":
      return PROBLEMS.storeRefused;
    default:
      return PROBLEMS.storeUnavailable;
  }
}

function withHint(problem: Problem, hint: string | undefined): Problem {
  return hint === undefined ? problem : { ...problem, hint };
}

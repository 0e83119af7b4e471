import { SecretStoreError } from "@devplat/secret-store";
import { PROBLEMS, type Problem } from "./problem.ts";

/** What an error of the secrets store means to whoever asked for it; undefined if it is none of the store's. */
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
      return withHint({ error: `${error.message}.`, code: "bad_path" }, error.hint);
    case "too_large":
      return { error: "The secret is larger than 1 MiB, or nested too deep.", code: "body_too_large" };
    case "unsupported_number":
      return withHint(
        { error: "The store cannot keep a number of this secret as it is.", code: "unsupported_number" },
        "Write the number as a string.",
      );
    default:
      return PROBLEMS.storeUnavailable;
  }
}

function withHint(problem: Problem, hint: string | undefined): Problem {
  return hint === undefined ? problem : { ...problem, hint };
}

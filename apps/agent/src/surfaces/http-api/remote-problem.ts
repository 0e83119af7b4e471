import { AgentError } from "../../errors.ts";
import { ForwardError, RemotesFileError } from "../forwards/errors/forward-error.ts";
import type { OfferedKey } from "../forwards/host-keys.ts";
import { ConnectionError } from "../forwards/openssh/failure.ts";
import type { Problem, ProblemCode, ProblemExtensions } from "./problem.ts";

/** A problem with its further members. */
export interface RemoteProblem {
  readonly problem: Problem;
  readonly extensions?: ProblemExtensions;
}

const CODES: Readonly<Partial<Record<ForwardError["code"], ProblemCode>>> = {
  host_unknown: "host_unknown",
  host_exists: "host_exists",
  file_invalid: "file_invalid",
};

/** The problem for an error of managed SSH forwards; undefined for another error. */
export function remoteProblem(error: unknown): RemoteProblem | undefined {
  // Another user can write ssh.yaml.
  if (error instanceof AgentError && error.code === "config_refused")
    return { problem: problemOf(error, "file_invalid"), extensions: { line: 0 } };
  if (!(error instanceof ForwardError)) return undefined;
  if (error instanceof ConnectionError)
    return { problem: problemOf(error, "connection_failed"), extensions: { class: error.failure.class } };
  const problem = problemOf(error, CODES[error.code] ?? "remote_refused");
  return error instanceof RemotesFileError ? { problem, extensions: { line: error.line } } : { problem };
}

/** The problem for a key that a person has to confirm. */
export function unconfirmedKeyProblem({ pinned, ...offered }: OfferedKey): RemoteProblem {
  const { host, type, fingerprint } = offered;
  const before = pinned === undefined ? "" : ` The pinned key has ${pinned}.`;
  return {
    problem: {
      code: "host_key_unknown",
      detail: `The ${type} key of ${host} with the fingerprint ${fingerprint} is not confirmed.${before}`,
    },
    extensions: { offered: { ...offered, pinned: pinned ?? null } },
  };
}

function problemOf({ message, hint }: ForwardError | AgentError, code: ProblemCode): Problem {
  const detail = /[.…]$/.test(message) ? message : `${message}.`;
  return { code, detail, ...(hint !== undefined && { hint }) };
}

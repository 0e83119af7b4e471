import { AppError } from "@devplat/base";
import { SecretStoreError } from "@devplat/secret-store";
import { AgentError } from "../../../errors.ts";
import { ForwardError, RemotesFileError } from "../../forwards/errors/forward-error.ts";
import type { OfferedKey } from "../../forwards/host-keys.ts";
import { ConnectionError } from "../../forwards/openssh/failure.ts";
import type { Problem, ProblemCode, ProblemExtensions } from "./problem.ts";

/** A problem with its further members. */
export interface RemoteProblem {
  readonly problem: Problem;
  readonly extensions?: ProblemExtensions;
}

const CODES: Readonly<Partial<Record<ForwardError["code"], ProblemCode>>> = {
  host_unknown: "host_unknown",
  host_exists: "host_exists",
};

/** The problem for an error that a request for remotes ends with; undefined for a fault of the program or the store. */
export function remoteProblem(error: unknown): RemoteProblem | undefined {
  // Another user can write ssh.yaml.
  if (error instanceof AgentError && error.code === "config_refused")
    return { problem: problemOf(error, "file_invalid"), extensions: { line: 0 } };
  if (error instanceof ConnectionError)
    return { problem: problemOf(error, "connection_failed"), extensions: { class: error.failure.class } };
  if (error instanceof RemotesFileError)
    return { problem: problemOf(error, "file_invalid"), extensions: { line: error.line } };
  if (error instanceof ForwardError)
    return { problem: problemOf(error, CODES[error.code] ?? "remote_refused") };
  // A fault of this host, such as a folder that cannot be used.
  if (!(error instanceof AppError) || error instanceof SecretStoreError) return undefined;
  return { problem: problemOf(error, "remote_refused") };
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

function problemOf({ message, hint }: AppError, code: ProblemCode): Problem {
  const detail = /[.…]$/.test(message) ? message : `${message}.`;
  return { code, detail, ...(hint !== undefined && { hint }) };
}

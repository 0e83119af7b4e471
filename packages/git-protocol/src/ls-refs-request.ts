import type { CommandRequest } from "./command-request.ts";

/** Arguments of `ls-refs` (gitprotocol-v2, "ls-refs"). */
export interface LsRefsRequest {
  readonly symrefs: boolean;
  readonly peel: boolean;
  readonly unborn: boolean;
  /** Prefixes of the requested ref names. Without any, all refs are requested. */
  readonly refPrefixes: readonly string[];
  /** Unknown arguments, as in the request. */
  readonly unknown: readonly string[];
}

/** Maximum prefixes. With more, git's server ignores all prefixes and sends all refs (ls-refs.c, TOO_MANY_PREFIXES). */
export const MAX_REF_PREFIXES = 65_536;

const PREFIX = "ref-prefix ";

/** Reads the arguments. Never fails: unknown arguments are kept in `unknown`. */
export function decodeLsRefsRequest(request: CommandRequest): LsRefsRequest {
  const refPrefixes: string[] = [];
  const unknown: string[] = [];
  const flags = { symrefs: false, peel: false, unborn: false };
  for (const arg of request.args) {
    if (arg === "symrefs" || arg === "peel" || arg === "unborn") flags[arg] = true;
    else if (arg.startsWith(PREFIX)) refPrefixes.push(arg.slice(PREFIX.length));
    else unknown.push(arg);
  }
  return { ...flags, refPrefixes, unknown };
}

/** Encodes a request, with the arguments in the order of git. */
export function encodeLsRefsRequest(refs: LsRefsRequest, capabilities: readonly string[]): CommandRequest {
  const args: string[] = [];
  if (refs.peel) args.push("peel");
  if (refs.symrefs) args.push("symrefs");
  if (refs.unborn) args.push("unborn");
  args.push(...refs.refPrefixes.map((prefix) => PREFIX + prefix), ...refs.unknown);
  return { command: "ls-refs", capabilities, args };
}

import type { CommandRequest } from "./command-request.ts";

/** The arguments of `ls-refs` (gitprotocol-v2, "ls-refs"). */
export interface LsRefsRequest {
  readonly symrefs: boolean;
  readonly peel: boolean;
  readonly unborn: boolean;
  /** Only names with one of these beginnings are asked for; none = all names. */
  readonly refPrefixes: readonly string[];
  /** Arguments that are none of the above, as they came. */
  readonly unknown: readonly string[];
}

/** Git's server ignores all prefixes when there are more (ls-refs.c, TOO_MANY_PREFIXES): the answer is then whole. */
export const MAX_REF_PREFIXES = 65_536;

const PREFIX = "ref-prefix ";

/** Reads the arguments; never fails: what it does not know it keeps. */
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

/** The request with its arguments in the order in which git sends them. */
export function encodeLsRefsRequest(refs: LsRefsRequest, capabilities: readonly string[]): CommandRequest {
  const args: string[] = [];
  if (refs.peel) args.push("peel");
  if (refs.symrefs) args.push("symrefs");
  if (refs.unborn) args.push("unborn");
  args.push(...refs.refPrefixes.map((prefix) => PREFIX + prefix), ...refs.unknown);
  return { command: "ls-refs", capabilities, args };
}

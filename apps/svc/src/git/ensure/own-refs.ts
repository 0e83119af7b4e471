import type { CommandRequest, ObjectFormat } from "@devplat/git-protocol";
import type { AccessCheck, ProbeOptions } from "../../access/access-check.ts";
import type { Refusal } from "../../access/access-request.ts";
import type { RefsResponse } from "../../access/ref-probe.ts";
import type { Problem } from "../../http/request/problem.ts";
import type { UpstreamResponse } from "../../upstream/upstream.ts";
import type { RepositoryRequest } from "../git-request.ts";

/** Refs that this service asks for within a request of a program that is not git. */
export interface OwnRefs extends ProbeOptions {
  /** The object format that the caller supposes. */
  readonly format: ObjectFormat;
  readonly prefixes: readonly string[];
  readonly timeoutSeconds: number;
}

export interface OwnRefsResponse {
  readonly refs: RefsResponse;
  /** The object format that the code host accepted. */
  readonly format: ObjectFormat;
  /** The credential that the response is for. */
  readonly authorization: string | undefined;
}

/** The response to a caller whose request the code host refused. */
export type RefusalAnswer =
  | { readonly kind: "problem"; readonly outcome: "error"; readonly problem: Problem }
  | { readonly kind: "relay"; readonly response: UpstreamResponse };

/** The code host's refusal is for the caller. Any other response of the code host would be read as one of this service. */
export function answerOfRefusal({ response }: Refusal, hostName: string): RefusalAnswer {
  if (response.status >= 400) return { kind: "relay", response };
  response.cancel();
  const detail = `${hostName} answered ${response.status}, and no list of refs. Is this the repository's current name?`;
  return { kind: "problem", outcome: "error", problem: { code: "host_unreachable", detail } };
}

export function lsRefsOf(format: ObjectFormat): CommandRequest {
  return { command: "ls-refs", capabilities: [`object-format=${format}`], args: [] };
}

/**
 * Asks the code host for refs with the caller's credential, which is renewed once after a 401. Of a repository that is not cached
 * nothing is recorded.
 *
 * @throws GitError as {@link AccessCheck.ask}
 */
export async function askForRefs(
  access: AccessCheck,
  request: RepositoryRequest,
  { format, prefixes, timeoutSeconds, ...options }: OwnRefs,
): Promise<OwnRefsResponse> {
  const isCached = request.policy?.enabled === true;
  const askedAt = performance.now();
  const ask = async (authorization: string | undefined, as: ObjectFormat): Promise<RefsResponse> => {
    const asked = { ...request, authorization, policy: { timeoutSeconds } };
    return isCached
      ? await access.ask(asked, lsRefsOf(as), prefixes, options)
      : await access.askUnlisted(asked, lsRefsOf(as), prefixes, options);
  };
  let { authorization } = request;
  let refs = await ask(authorization, format);
  if (refs.kind === "refused" && refs.response.status === 401) {
    const renewed = await request.renew?.();
    if (renewed !== undefined) refs = await ask((authorization = renewed), format);
  }
  // Git servers end the response if the object format is not the repository's.
  let accepted = format;
  if (refs.kind === "refused" && refs.response.status === 200) {
    const other = format === "sha1" ? "sha256" : "sha1";
    const others = await ask(authorization, other);
    if (others.kind === "authorized") [refs, accepted] = [others, other];
  }
  request.context.stage("gate", askedAt);
  return { refs, format: accepted, authorization };
}

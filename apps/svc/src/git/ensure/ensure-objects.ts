import { EMPTY_FETCH, type ObjectFormat } from "@devplat/git-protocol";
import type { AccessCheck } from "../../access/access-check.ts";
import type { EnsureResult, ObjectEnsurer } from "../../cache/ensuring/object-ensurer.ts";
import type { GitCache } from "../../cache/git-cache.ts";
import { ownCommandHeaders } from "../../upstream/headers.ts";
import type { Upstream } from "../../upstream/upstream.ts";
import { clientOf } from "../fetch-command.ts";
import { ClientUpstream } from "../fetch-upstream.ts";
import type { CachedRequest } from "../git-request.ts";
import { lsRefsOf } from "./own-refs.ts";

export interface EnsureObjectsParts {
  readonly upstream: Upstream;
  readonly access: AccessCheck;
  readonly cache: GitCache;
  readonly ensurer: ObjectEnsurer;
  /** For requests of the service itself. */
  readonly userAgent: string;
}

/** Objects that the code host has shown to the caller. */
export interface WantedObjects {
  readonly format: ObjectFormat;
  readonly oids: readonly string[];
  /** When the request to the code host that showed them was sent. */
  readonly sentAt: number;
}

/**
 * Brings objects into the mirror, with the caller's credential.
 *
 * @returns the result, and when the code host's latest authorization was asked for
 * @throws GitError if the code host does not answer
 */
export async function ensureObjects(
  { upstream, access, cache, ensurer, userAgent }: EnsureObjectsParts,
  request: CachedRequest,
  { format, oids, sentAt }: WantedObjects,
  waitMs: number,
): Promise<{ readonly result: EnsureResult; readonly sentAt: number }> {
  const { owner, name } = request.target;
  const fetch = { ...EMPTY_FETCH, wants: oids, done: true };
  const command = lsRefsOf(format);
  const authorization = await access.authorizeFetch(request, { command, fetch, format }, sentAt);
  if ("kind" in authorization) return { result: authorization, sentAt };
  const headers = () => ownCommandHeaders(userAgent, request.authorization);
  const ensuredAt = performance.now();
  const result = await ensurer.ensure(
    {
      repository: cache.repository(owner, name),
      format,
      fetch,
      wantedRefs: new Map(),
      gone: request.context.gone,
      client: clientOf(request.context),
      upstream: new ClientUpstream({ upstream, access, request, authorization, headers }),
    },
    waitMs,
  );
  request.context.timing("ensure", performance.now() - ensuredAt);
  return { result, sentAt: authorization.sentAt };
}

import { encodeErrorLine, encodeSideBandError, type FetchRequest } from "@devplat/git-protocol";
import { GitStoreError, isMissingFile } from "../errors.ts";
import type { Oid } from "../oid.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { ReachableSet } from "../reachability/reachable-set.ts";
import type { Repository } from "../repository/repository.ts";
import { refOid, type FetchContext } from "../serve/fetch-context.ts";
import { headOid, type RefsNow } from "./refs-now.ts";
import { ServedRepository } from "./served-repository.ts";
import { whyMissing } from "./why-missing.ts";

/**
 * Maximum tries of one response. Another process that packs objects may remove a file between its listing and its opening; its
 * objects are then in a new pack.
 */
const MAX_TRIES = 5;

/** One request to a repository, and its refs at that moment. */
export interface Serving {
  readonly repository: Repository;
  readonly now: RefsNow;
  readonly signal: AbortSignal;
  readonly onError: (error: unknown) => void;
}

type UploadPack = (graph: ObjectGraph, context: FetchContext) => AsyncGenerator<Uint8Array>;

/** Responds to a fetch. Failures are in the response, and those that are not the client's are passed to `onError`. */
export async function* respondFetch(
  serving: Serving,
  request: FetchRequest,
  uploadPack: UploadPack,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { repository, signal, onError } = serving;
  let isBegun = false;
  for (let left = MAX_TRIES - 1; ; left--) {
    try {
      for await (const chunk of respondOnce(serving, request, uploadPack)) {
        isBegun = true;
        yield chunk;
      }
      return;
    } catch (error) {
      if (signal.aborted) throw error;
      const isFirst = left === MAX_TRIES - 1;
      // The first retry is for a change that another request has noticed.
      if (!isBegun && left > 0 && isGone(error) && (repository.objects.refresh() || isFirst)) continue;
      if (error instanceof GitStoreError && error.code === "unservable") {
        yield isBegun ? encodeSideBandError(error.message) : encodeErrorLine(error.message);
        return;
      }
      const cause = whyMissing(repository.objects, error);
      onError(cause);
      // Other messages may contain paths of this machine.
      const isMissing = cause instanceof GitStoreError && cause.code === "missing_object";
      const message = `upload-pack: ${isMissing ? cause.message : "the repository could not be read"}`;
      yield isBegun ? encodeSideBandError(message) : encodeErrorLine(message);
      return;
    }
  }
}

/** Tells whether an error can come from another process that packs and removes objects at the same time. */
function isGone(error: unknown): boolean {
  return isMissingFile(error) || (error instanceof GitStoreError && error.code === "missing_object");
}

async function* respondOnce(
  { repository, now, signal }: Serving,
  request: FetchRequest,
  uploadPack: UploadPack,
): AsyncGenerator<Uint8Array, void, undefined> {
  const graph = await ServedRepository.of(repository).graph(now.refs);
  try {
    const why = await whyRefused(graph, request, now, signal);
    if (why !== undefined) yield encodeErrorLine(`upload-pack: ${why}`);
    else yield* uploadPack(graph, { refs: now.refs, head: headOid(now), signal });
  } finally {
    graph.release();
  }
}

/**
 * Checks that a ref reaches each wanted object.
 *
 * @throws {GitStoreError} `missing_object` for a ref whose object is not here
 */
async function whyRefused(
  graph: ObjectGraph,
  request: FetchRequest,
  now: RefsNow,
  signal: AbortSignal,
): Promise<string | undefined> {
  const head = headOid(now);
  const tips = new Map<Oid, string>();
  for (const { oid, peeled, name } of now.refs.values()) {
    tips.set(oid, name);
    if (peeled !== undefined) tips.set(peeled, name);
  }
  if (head !== undefined) tips.set(head, "HEAD");
  const wantedRefs = request.wantRefs.flatMap((name) => refOid(name, { refs: now.refs, head }) ?? []);
  for (const oid of [...request.wants, ...wantedRefs]) {
    const name = tips.get(oid);
    if (name !== undefined && graph.numbers.numberOfOid(oid) < 0) {
      throw new GitStoreError("missing_object", `${name} points to ${oid}, which is not in the store`, {
        oid,
      });
    }
  }
  const others = request.wants.filter((oid) => !tips.has(oid));
  if (others.length === 0) return undefined;
  const visible = await ReachableSet.of(graph, tips.keys(), { signal });
  const hidden = others.find((oid) => !visible.has(oid));
  return hidden === undefined ? undefined : `not our ref ${hidden}`;
}

import {
  ProtocolError,
  encodeCommandRequest,
  EMPTY_FETCH,
  encodeFetchRequest,
  type ObjectFormat,
} from "@devplat/git-protocol";
import { GitStoreError, type Ref } from "@devplat/git-store";
import type { AdmissionQueue } from "../admission/admission-queue.ts";
import type { Place } from "../admission/fair-queue.ts";
import { upstreamWork } from "../admission/places.ts";
import { withBody, type UpstreamResponse } from "../../upstream/upstream.ts";
import { isUploadPackResult } from "../../upstream/headers.ts";
import { mayStore, requireStorable, type FillJob } from "../fetch-plan.ts";
import type { CachePolicies } from "../policy.ts";
import type { FetchSharing } from "../fetch-sharing.ts";
import { SURVEYED_PREFIXES, shareHistory, type MissingWants, type Mirror } from "@devplat/git-mirror";
import { packBytes } from "./pack-stream.ts";

/** Maximum haves in a request. Git sends fewer in its first round; the history of each is implied. */
const MAX_HAVES = 512;
/** Bytes before the pack that are kept, so that an error in them can be passed on. */
export const MAX_ERROR_BYTES = 64 * 1024;

/**
 * Result of fetching the objects that the mirror lacks.
 * - `filled`: the mirror has them. `fetched`: this fetch got them from the code host, not another fill. `shared`: another
 *   instance may have got them.
 * - `unrelated`: the mirror has them, and they share no history with its older objects.
 * - `refused`: the code host's response is for the caller whose credential was used.
 * - `busy`: the limit gave no turn in time.
 * - `removed`: the repository was removed, disabled or purged since the request.
 */
export type MissingObjectFetchOutcome =
  | { readonly kind: "filled"; readonly fetched: boolean; readonly shared: boolean }
  | { readonly kind: "unrelated" }
  | { readonly kind: "busy" }
  | { readonly kind: "removed" }
  | { readonly kind: "refused"; readonly response: UpstreamResponse };

/** A running fetch of objects that the mirror lacks. */
export interface MissingObjectFetch {
  readonly outcome: Promise<MissingObjectFetchOutcome>;
  /** Resolves with the first byte of the code host's response. It may never resolve. */
  readonly firstByte: Promise<void>;
}

/** The code host's response has no pack. */
export class FetchRefused extends Error {
  readonly response: UpstreamResponse;

  constructor(response: UpstreamResponse) {
    super("the code host refused a fetch");
    this.response = response;
  }
}

/** The limit gave no turn in time. */
class NoTurn extends Error {}

/** The request to the code host failed. Its error is the cause. */
export class RequestFailed extends Error {}

/** The code host's response broke off, or has no sound pack. */
export class ResponseBroken extends Error {}

/**
 * Fetches the objects that a mirror lacks for a request. It requests only the missing wants, with the mirror's refs as
 * haves. So the code host makes one delta for clients that are behind by different amounts. There is one fetch for each
 * set of missing wants. It continues when its caller leaves, because the mirror needs the objects too.
 */
export class MissingObjectFetches {
  readonly #queue: AdmissionQueue;
  readonly #sharing: FetchSharing | undefined;
  readonly #policies: CachePolicies;
  readonly #running = new Map<string, MissingObjectFetch>();

  /** @param sharing undefined: each instance fetches for itself */
  constructor(queue: AdmissionQueue, sharing: FetchSharing | undefined, policies: CachePolicies) {
    this.#queue = queue;
    this.#sharing = sharing;
    this.#policies = policies;
  }

  /** The running fetch of the same objects, if another request started one. */
  running(job: FillJob, missing: MissingWants): MissingObjectFetch | undefined {
    return this.#running.get(keyOf(job, missing));
  }

  /**
   * @param waitMs maximum milliseconds to wait for a turn
   * @throws in `outcome`: RequestFailed, ResponseBroken, or the error of the pack or the disk
   */
  fetch(job: FillJob, missing: MissingWants, mirror: Mirror, waitMs: number): MissingObjectFetch {
    const key = keyOf(job, missing);
    const { promise: firstByte, resolve } = Promise.withResolvers<void>();
    const outcome = this.#fetch(job, missing, mirror, waitMs, resolve).finally(() =>
      this.#running.delete(key),
    );
    const fetching = { outcome, firstByte };
    this.#running.set(key, fetching);
    return fetching;
  }

  async #fetch(
    job: FillJob,
    { wants, tips, view }: MissingWants,
    mirror: Mirror,
    waitMs: number,
    begun: () => void,
  ): Promise<MissingObjectFetchOutcome> {
    const { repository, format } = job;
    const { signal } = new AbortController();
    const turn = await this.#sharing?.objects(repository.id, subjectOf(wants), { signal, onBegun: begun });
    const forAll = turn?.kind === "lead" ? turn.fetch : undefined;
    const shared = turn?.kind === "here";
    let received = 0;
    const before = [...view.refs.values()].map(({ oid }) => oid);
    const related = tips.oids.values().some((oid) => view.graph.numbers.numberOfOid(oid) >= 0);
    let place: Place | undefined;
    let fetched = false;
    const open = async (refs: ReadonlyMap<string, Ref>): Promise<AsyncIterable<Buffer>> => {
      fetched = true;
      const taken = (place = await this.#queue.take(
        upstreamWork(repository.id.key, job.client),
        signal,
        waitMs,
      ));
      if (taken === undefined) throw new NoTurn();
      requireStorable(job, this.#policies);
      const response = await job.upstream
        .fetch(requestFor(wants, refs, format), signal)
        .catch((cause: unknown) => {
          throw new RequestFailed("the request to the code host failed", { cause });
        });
      if (!isUploadPackResult(response)) throw new FetchRefused(response);
      return packOf(response, (bytes) => {
        begun();
        taken.moved(bytes);
        forAll?.received((received += bytes));
      });
    };
    try {
      requireStorable(job, this.#policies);
      const covered = repository.tips.surveyedWithin(Infinity) ? SURVEYED_PREFIXES : [];
      // Opens nothing if another instance has fetched the objects.
      await mirror.receive({ open, format, wants, shown: tips.refs.values(), covered });
      forAll?.complete();
    } catch (error) {
      forAll?.giveUp();
      if (!mayStore(job, this.#policies)) return { kind: "removed" };
      if (error instanceof NoTurn) return { kind: "busy" };
      if (error instanceof FetchRefused) return { kind: "refused", response: error.response };
      // The mirror was checked before, so the fault is in the received pack. The mirror must not be repaired for it.
      if (error instanceof GitStoreError && error.code !== "locked") {
        throw new ResponseBroken("the code host's pack cannot be stored", { cause: error });
      }
      throw error;
    } finally {
      place?.release();
    }
    if (related || !fetched) return { kind: "filled", fetched, shared };
    const now = await mirror.view(format);
    if (now === undefined) return { kind: "filled", fetched, shared };
    try {
      const same = await shareHistory(now, [...wants, ...tips.oids], before);
      return same ? { kind: "filled", fetched, shared } : { kind: "unrelated" };
    } finally {
      now.release();
    }
  }
}

/** The same for equal objects. */
export function subjectOf(wants: readonly string[]): string {
  return wants.toSorted().join(" ");
}

function keyOf({ repository, generation }: FillJob, { wants }: MissingWants): string {
  const identity = `${generation}.${repository.tips.identity}`;
  return `${repository.id.key}#${identity} ${subjectOf(wants)}`;
}

/** A request for these objects, with the refs of the mirror as haves. Branches come first, because they move. */
export function requestFor(
  wants: readonly string[],
  refs: ReadonlyMap<string, Ref>,
  format: ObjectFormat,
): Buffer {
  const known = [...refs.values()].toSorted(
    (a, b) => Number(b.name.startsWith("refs/heads/")) - Number(a.name.startsWith("refs/heads/")),
  );
  const haves = [...new Set(known.map(({ peeled, oid }) => peeled ?? oid))].slice(0, MAX_HAVES);
  return encodeCommandRequest(
    encodeFetchRequest(
      {
        ...EMPTY_FETCH,
        wants,
        haves,
        done: true,
        thinPack: true,
        noProgress: true,
        includeTag: true,
        ofsDelta: true,
      },
      [`object-format=${format}`],
    ),
  );
}

/**
 * The pack of a response. An error in place of the pack becomes a refusal with the response's own bytes.
 *
 * @param arrives called with the size of each chunk of the response
 */
export async function* packOf(
  response: UpstreamResponse,
  arrives: (bytes: number) => void = () => undefined,
): AsyncGenerator<Buffer, void, undefined> {
  const head: Buffer[] = [];
  let size = 0;
  let begun = false;
  const watched = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of response.chunks) {
      arrives(chunk.length);
      if (!begun && size < MAX_ERROR_BYTES) head.push(chunk);
      size += chunk.length;
      yield chunk;
    }
  };
  try {
    for await (const bytes of packBytes(watched())) {
      begun = true;
      yield bytes;
    }
  } catch (error) {
    const refused = !begun && error instanceof ProtocolError && error.code === "remote_error";
    if (refused) throw new FetchRefused(withBody(response, Buffer.concat(head)));
    throw new ResponseBroken("the code host's response broke off", { cause: error });
  }
}

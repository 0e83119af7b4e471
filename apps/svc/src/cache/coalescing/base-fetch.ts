import {
  ProtocolError,
  encodeCommandRequest,
  EMPTY_FETCH,
  encodeFetchRequest,
  type ObjectFormat,
} from "@devplat/git-protocol";
import { GitStoreError, type Ref } from "@devplat/git-store";
import { withBody, type UpstreamAnswer } from "../../upstream/upstream.ts";
import { isUploadPackResult } from "../../upstream/upload-pack-type.ts";
import type { FetchJob } from "../fetch-plan.ts";
import { SURVEYED_PREFIXES, shareHistory, type MissingWants, type Mirror } from "@devplat/git-mirror";
import { packBytes } from "./pack-stream.ts";
import type { UpstreamSlots } from "./slots.ts";

/** Ids that the code host is told are here. More than git sends in a first round; their history is implied. */
const MAX_HAVES = 512;
/** Bytes before the pack that are kept, so that an error in them can be passed on. */
const MAX_ERROR_BYTES = 64 * 1024;

/**
 * Result of fetching the objects that the mirror lacks.
 * - `filled`: they are here; `asked`: the code host gave them to this fetch, and no other fill had brought them.
 * - `unrelated`: they are here, and belong to another history than all that was here before.
 * - `refused`: the code host's answer is for the one that asked.
 * - `busy`: no turn came in time.
 */
export type BaseFetchOutcome =
  | { readonly kind: "filled"; readonly asked: boolean }
  | { readonly kind: "unrelated" }
  | { readonly kind: "busy" }
  | { readonly kind: "refused"; readonly answer: UpstreamAnswer };

/** A fetch of the objects that the store lacks, under way. */
export interface BaseFetch {
  readonly outcome: Promise<BaseFetchOutcome>;
  /** Resolves with the first byte of the code host's answer; it may never do. */
  readonly firstByte: Promise<void>;
}

/** The code host's answer holds no pack. */
class FetchRefused extends Error {
  readonly answer: UpstreamAnswer;

  constructor(answer: UpstreamAnswer) {
    super("the code host refused a fetch");
    this.answer = answer;
  }
}

/** No turn came in time. */
class NoTurn extends Error {}

/** The code host could not be asked; the cause is what asking threw. */
export class AskFailed extends Error {}

/** The code host's response broke off, or holds no sound pack. */
export class AnswerBroke extends Error {}

/**
 * Fetches the objects that a mirror lacks for a request: only the missing wants, with the store's tips as haves, so that clients
 * which are behind by different amounts cost the code host one delta. One fetch per set of missing wants; it goes on
 * when its caller leaves, because the store has use for it.
 */
export class BaseFetches {
  readonly #slots: UpstreamSlots;
  readonly #running = new Map<string, BaseFetch>();

  constructor(slots: UpstreamSlots) {
    this.#slots = slots;
  }

  /** The fetch of the same objects that somebody else set off. */
  running(job: FetchJob, missing: MissingWants): BaseFetch | undefined {
    return this.#running.get(keyOf(job, missing));
  }

  /**
   * @param waitMs for a turn, at most
   * @throws in `outcome`: AskFailed, AnswerBroke, or the error of the pack or the disk
   */
  fetch(job: FetchJob, missing: MissingWants, mirror: Mirror, waitMs: number): BaseFetch {
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
    job: FetchJob,
    { wants, tips, view }: MissingWants,
    mirror: Mirror,
    waitMs: number,
    begun: () => void,
  ): Promise<BaseFetchOutcome> {
    const { repository, format } = job;
    const { signal } = new AbortController();
    const before = [...view.refs.values()].map(({ oid }) => oid);
    const related = tips.oids.values().some((oid) => view.graph.numbers.numberOfOid(oid) >= 0);
    let release: (() => void) | undefined;
    let asked = false;
    const open = async (refs: ReadonlyMap<string, Ref>): Promise<AsyncIterable<Buffer>> => {
      asked = true;
      release = await this.#slots.acquire(repository.id.key, signal, waitMs);
      if (release === undefined) throw new NoTurn();
      const answer = await job.upstream
        .fetch(requestFor(wants, refs, format), signal)
        .catch((cause: unknown) => {
          throw new AskFailed("the code host could not be asked", { cause });
        });
      if (!isUploadPackResult(answer)) throw new FetchRefused(answer);
      return packOf(answer, begun);
    };
    try {
      const covered = repository.tips.surveyedWithin(Infinity) ? SURVEYED_PREFIXES : [];
      await mirror.receive({ open, format, wants, shown: tips.refs.values(), covered });
    } catch (error) {
      if (error instanceof NoTurn) return { kind: "busy" };
      if (error instanceof FetchRefused) return { kind: "refused", answer: error.answer };
      // The store was looked at before: what does not fit is the pack that came, and the store is not to suffer for it.
      if (error instanceof GitStoreError && error.code !== "locked") {
        throw new AnswerBroke("the code host's pack cannot be taken in", { cause: error });
      }
      throw error;
    } finally {
      release?.();
    }
    if (related || !asked) return { kind: "filled", asked };
    const now = await mirror.view(format);
    if (now === undefined) return { kind: "filled", asked };
    try {
      const same = await shareHistory(now, [...wants, ...tips.oids], before);
      return same ? { kind: "filled", asked } : { kind: "unrelated" };
    } finally {
      now.release();
    }
  }
}

function keyOf({ repository }: FetchJob, { wants }: MissingWants): string {
  const identity = `${repository.generation}.${repository.tips.identity}`;
  return `${repository.id.key}#${identity} ${wants.toSorted().join(" ")}`;
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
 * @param arrives called with each chunk of the answer
 */
export async function* packOf(
  answer: UpstreamAnswer,
  arrives: () => void = () => undefined,
): AsyncGenerator<Buffer, void, undefined> {
  const head: Buffer[] = [];
  let size = 0;
  let begun = false;
  const watched = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of answer.chunks) {
      arrives();
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
    if (refused) throw new FetchRefused(withBody(answer, Buffer.concat(head)));
    throw new AnswerBroke("the code host's answer broke off", { cause: error });
  }
}

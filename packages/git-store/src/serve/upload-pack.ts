import {
  DELIM_PKT,
  encodePktLine,
  encodeSideBand,
  encodeSideBandProgress,
  type FetchRequest,
  FLUSH_PKT,
  isOid,
  SIDE_BAND,
} from "@devplat/git-protocol";
import { GitStoreError } from "../errors.ts";
import { BLOB } from "../object-format.ts";
import type { Oid } from "../oid.ts";
import { andNotInto, type Bitset } from "../reachability/bitset.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { finish, finishInSlices, Pause, type Steps } from "../slices.ts";
import { recycleChunk } from "./chunk-pool.ts";
import { MAX_REQUEST_OIDS, refOid, resolveShort, type FetchContext } from "./fetch-context.ts";
import { parseFilter, simpleFilters, type Filter } from "./filter.ts";
import { negotiate } from "./negotiate.ts";
import { isStoredPack, PackWriter, type PackTotals } from "./pack-writer.ts";
import { PacketBuffer } from "./packet-buffer.ts";
import { selectObjects } from "./select-objects.ts";
import { storedBytesSteps } from "./stored-bytes.ts";
import { shallowHistory } from "./shallow-history.ts";
import { tagRefs } from "./tag-refs.ts";

/** Ids that are looked up between two pauses: about a millisecond. */
const OIDS_PER_STEP = 512;

/**
 * Returns the reason why these objects and refs cannot serve a request, or undefined if they can. It walks nothing, so a
 * missing ancestor or tree is found only when the response is built (`missing_object`, before its first byte).
 */
export function whyNotServable(
  graph: ObjectGraph,
  request: FetchRequest,
  context: Pick<FetchContext, "refs" | "head">,
): string | undefined {
  return finish(whyNotServableSteps(graph, request, context));
}

/** Like {@link whyNotServable}, but yields between look-ups, so that the caller can let other work run. */
export function* whyNotServableSteps(
  graph: ObjectGraph,
  request: FetchRequest,
  context: Pick<FetchContext, "refs" | "head">,
): Steps<string | undefined> {
  let looked = 0;
  if (request.unknown.length > 0) return "an argument that is not known";
  if (request.wants.length + request.haves.length + request.shallows.length > MAX_REQUEST_OIDS) {
    return "more object ids than are looked up for one request";
  }
  const wants = [...request.wants];
  for (const name of request.wantRefs) {
    const oid = refOid(name, context);
    if (oid === undefined) return "a ref that is not here is wanted";
    wants.push(oid);
  }
  for (const oid of wants) {
    if (++looked % OIDS_PER_STEP === 0) yield;
    if (!isOid(oid, graph.format) || graph.numbers.numberOfOid(oid) < 0)
      return "an object that is not here is wanted";
  }
  for (const oid of [...request.haves, ...request.shallows]) {
    if (!isOid(oid, graph.format)) return "an object id of another format";
  }
  for (const oid of request.shallows) {
    if (++looked % OIDS_PER_STEP === 0) yield;
    const number = graph.numbers.numberOfOid(oid);
    if (number >= 0 && !graph.types.isCommit(number)) return "a shallow object that is not a commit";
  }
  if (request.filter !== undefined && parseFilter(request.filter) === undefined) {
    return "a filter that is not supported";
  }
  const bySelection = request.deepenSince !== undefined || request.deepenNots.length > 0;
  if (request.deepen !== undefined && (bySelection || request.deepen < 1)) return "a depth that cannot be";
  for (const name of request.deepenNots) {
    if (resolveShort(name, context) === undefined) return "a deepen-not that names no single ref";
  }
  return undefined;
}

/**
 * Responds to `fetch` of protocol v2 (gitprotocol-v2, "fetch") as `git upload-pack --stateless-rpc` does: negotiation,
 * shallow history, filters, and the pack, in the order acknowledgments, shallow-info, wanted-refs, packfile.
 *
 * It yields framed bytes for the body of a response, at most 256 KiB at a time. The consumer owns each chunk (but see
 * `reuseChunks`), and may give its memory back with `recycleChunk`. The work runs when the next chunk is requested, so a slow consumer slows it down. Every failure that
 * the request or a missing object can cause is thrown before the first chunk.
 *
 * @param graph an acquired graph; the iterator retains it from its first step to its end
 * @throws {GitStoreError} `unservable` (see {@link whyNotServable}), `missing_object`, and the errors of a corrupt pack
 */
export async function* uploadPackV2Fetch(
  graph: ObjectGraph,
  request: FetchRequest,
  context: FetchContext,
): AsyncGenerator<Buffer, void, undefined> {
  graph.retain();
  try {
    const why = await finishInSlices(whyNotServableSteps(graph, request, context), context.signal);
    if (why !== undefined) throw new GitStoreError("unservable", `serve a fetch: ${why}`);
    yield* respond(graph, request, context);
  } finally {
    graph.release();
  }
}

async function* respond(
  graph: ObjectGraph,
  request: FetchRequest,
  context: FetchContext,
): AsyncGenerator<Buffer, void, undefined> {
  const { signal } = context;
  const lines = new Sections(request.sidebandAll);
  const wanted = request.wantRefs.map((name) => ({ name, oid: refOid(name, context)! }));
  const wants = await finishInSlices(
    numberSteps(graph, [...request.wants, ...wanted.map(({ oid }) => oid)]),
    signal,
  );
  // Without wants the response is empty and has no flush packet, as in git.
  if (wants.length === 0 && !request.waitForDone) return;
  const negotiation = negotiate(graph, wants, request.haves);
  if (request.haves.length > 0 && !request.done) {
    lines.begin("acknowledgments");
    for (const oid of negotiation.common) lines.line(`ACK ${oid}`);
    if (negotiation.common.length === 0) lines.line("NAK");
    if (request.waitForDone || !negotiation.ready) {
      lines.flush();
      yield lines.take();
      return;
    }
    lines.line("ready");
  }
  const history = await shallowHistory(graph, request, wants, context);
  if (history.announce) {
    lines.begin("shallow-info");
    for (const number of history.shallow) lines.line(`shallow ${graph.numbers.oidOf(number)}`);
    for (const number of history.unshallow) lines.line(`unshallow ${graph.numbers.oidOf(number)}`);
  }
  if (wanted.length > 0) {
    lines.begin("wanted-refs");
    for (const { name, oid } of wanted) lines.line(`${oid} ${name}`);
  }
  const filter = request.filter === undefined ? undefined : parseFilter(request.filter)!;
  const { send, clientHas } = await selectObjects(
    graph,
    {
      wants: [...wants, ...history.moreWants],
      haves: [...negotiation.commonNumbers, ...history.unshallow],
      clientShallow: history.client,
      shallow: history.cut,
      filter,
      tags: request.includeTag ? tagRefs(graph, context.refs) : [],
    },
    signal,
  );
  const plan = {
    send,
    clientHas: request.thinPack ? thinBases(graph, clientHas, filter) : undefined,
    ofsDelta: request.ofsDelta,
  };
  if (context.onSelected !== undefined) {
    context.onSelected(await finishInSlices(storedBytesSteps(graph, send), signal));
  }
  lines.begin("packfile");
  yield lines.take();
  const out = new PacketBuffer(isStoredPack(graph, plan) ? undefined : graph.format);
  const writer = new PackWriter(graph, plan, out);
  const steps = writer.write();
  // A consumer that never waits, and a step that makes no chunk, must not block the thread.
  const pause = new Pause(signal);
  for (let first = true, done = false; !done; first = false) {
    const step = steps.next();
    done = step.done === true;
    if (step.value !== undefined) await step.value;
    // The first step counts the objects.
    if (first && !request.noProgress) yield countingText(writer.totals.objects);
    if (done) {
      if (!request.noProgress) out.progress(totalsText(writer.totals));
      out.end();
    }
    for (let chunk = out.take(); chunk !== undefined; chunk = out.take()) {
      yield chunk;
      if (context.reuseChunks === true) recycleChunk(chunk);
      signal?.throwIfAborted();
    }
    if (pause.isDue) await pause.take();
  }
  context.onTotals?.(writer.totals);
}

/** Returns the numbers of ids without duplicates. All ids must be in the graph. */
function* numberSteps(graph: ObjectGraph, oids: readonly Oid[]): Steps<number[]> {
  const numbers = new Set<number>();
  for (const [at, oid] of oids.entries()) {
    if (at % OIDS_PER_STEP === 0) yield;
    numbers.add(graph.numbers.numberOfOid(oid));
  }
  return [...numbers];
}

/** Collects the sections before the pack, with delim packets between them, and lines in side-band 1 for `sideband-all`. */
class Sections {
  readonly #sidebandAll: boolean;
  readonly #parts: Buffer[] = [];
  #begun = false;

  constructor(sidebandAll: boolean) {
    this.#sidebandAll = sidebandAll;
  }

  begin(name: string): void {
    if (this.#begun) this.#parts.push(DELIM_PKT);
    this.#begun = true;
    this.line(name);
  }

  line(text: string): void {
    const line = `${text}\n`;
    this.#parts.push(
      this.#sidebandAll ? encodeSideBand(SIDE_BAND.pack, Buffer.from(line, "latin1")) : encodePktLine(line),
    );
  }

  flush(): void {
    this.#parts.push(FLUSH_PKT);
  }

  take(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

/** A client that filters may lack objects that its commits reach. Such objects must not be bases. */
function thinBases(
  graph: ObjectGraph,
  clientHas: Bitset | undefined,
  filter: Filter | undefined,
): Bitset | undefined {
  if (clientHas === undefined || filter === undefined) return clientHas;
  if (simpleFilters(filter).some(({ kind }) => kind === "tree-depth" || kind === "object-type"))
    return undefined;
  const bases = clientHas.slice();
  andNotInto(bases, graph.types.of(BLOB));
  return bases;
}

function countingText(objects: number): Buffer {
  const text =
    `Enumerating objects: ${objects}, done.\n` +
    `Counting objects: 100% (${objects}/${objects})${objects > 0 ? ", done." : ""}\n`;
  return encodeSideBandProgress(text);
}

/** Formats git's last line of progress. Examined entries count as reused, copied ones as pack-reused. */
function totalsText(totals: PackTotals): string {
  const { objects, verbatim, deltas, inflated } = totals;
  const reused = objects - verbatim - inflated;
  return `Total ${objects} (delta ${deltas}), reused ${reused} (delta ${deltas}), pack-reused ${verbatim}\n`;
}

import {
  DELIM_PKT,
  encodePktLine,
  encodeSideBand,
  FLUSH_PKT,
  SIDE_BAND,
  type FetchRequest,
} from "@devplat/git-protocol";
import { GitStoreError } from "../errors.ts";
import { BLOB, COMMIT } from "../object-format.ts";
import { isOid, type Oid } from "../oid.ts";
import { andNotInto, hasBit, type Bitset } from "../reachability/bitset.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { finishInSlices } from "../reachability/slices.ts";
import { peel, reachCommits } from "../reachability/walk.ts";
import type { Ref } from "../repository/packed-refs.ts";
import { parseFilter, type Filter } from "./filter.ts";
import { negotiate } from "./negotiate.ts";
import { isStoredPack, PackWriter, type PackTotals } from "./pack-writer.ts";
import { PacketBuffer } from "./packet-buffer.ts";
import { selectObjects } from "./select-objects.ts";
import { boundaryByDepth, boundaryBySelection, INFINITE_DEPTH, type Boundary } from "./shallow.ts";
import { tagRefs } from "./tag-refs.ts";

/** Object ids in one request: looking up more would keep the thread for about a second. */
const MAX_REQUEST_OIDS = 2 ** 18;

/** What {@link uploadPackV2Fetch} needs besides the request. */
export interface FetchContext {
  /** The repository's refs by full name: for `want-ref`, `include-tag`, `deepen-not` and `deepen-relative`. Not changed. */
  readonly refs: ReadonlyMap<string, Ref>;
  /** The id that HEAD leads to; undefined when there is none. A client may want HEAD by its name. */
  readonly head?: Oid | undefined;
  /** Stops the work; the iterator then throws the signal's reason. */
  readonly signal?: AbortSignal;
  /**
   * The consumer is done with a chunk when it asks for the next one: its memory is used again. Without this each chunk
   * has memory of its own, and a fast consumer makes much work for the garbage collector.
   */
  readonly reuseChunks?: boolean;
  /** Told once, when the pack is complete. */
  readonly onTotals?: (totals: Readonly<PackTotals>) => void;
}

/**
 * Why a request cannot be answered from these objects and refs; undefined when it can. Cheap: nothing is walked, so an
 * object that is missing further down shows only when the answer is made (`missing_object`, before its first byte).
 */
export function whyNotServable(
  graph: ObjectGraph,
  request: FetchRequest,
  context: Pick<FetchContext, "refs" | "head">,
): string | undefined {
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
    if (!isOid(graph.format, oid) || graph.numbers.numberOfOid(oid) < 0)
      return "an object that is not here is wanted";
  }
  for (const oid of [...request.haves, ...request.shallows]) {
    if (!isOid(graph.format, oid)) return "an object id of another format";
  }
  for (const oid of request.shallows) {
    const number = graph.numbers.numberOfOid(oid);
    if (number >= 0 && !graph.types.isCommit(number)) return "a shallow object that is no commit";
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
 * Answers `fetch` of protocol v2 (gitprotocol-v2, "fetch") as `git upload-pack --stateless-rpc` does: negotiation,
 * shallow history, filters, and the pack, in the order acknowledgments, shallow-info, wanted-refs, packfile.
 *
 * Yields framed bytes, ready for the body of a response, at most 256 KiB at a time; each chunk is the consumer's (but see
 * `reuseChunks`).
 * Work is done when the next chunk is asked for, so a slow consumer slows it down. Nothing is yielded before all that
 * could fail by the request or by a missing object has been done.
 *
 * @param graph acquired; the iterator keeps it from its first step to its end, whatever becomes of the caller's hold
 * @throws {GitStoreError} `unservable` (see {@link whyNotServable}), `missing_object`, and what a corrupt pack calls for
 */
export async function* uploadPackV2Fetch(
  graph: ObjectGraph,
  request: FetchRequest,
  context: FetchContext,
): AsyncGenerator<Buffer, void, undefined> {
  const why = whyNotServable(graph, request, context);
  if (why !== undefined) throw new GitStoreError("unservable", `serve a fetch: ${why}`);
  graph.retain();
  try {
    yield* answer(graph, request, context);
  } finally {
    graph.release();
  }
}

async function* answer(
  graph: ObjectGraph,
  request: FetchRequest,
  context: FetchContext,
): AsyncGenerator<Buffer, void, undefined> {
  const { signal } = context;
  const lines = new Sections(request.sidebandAll);
  const wanted = request.wantRefs.map((name) => ({ name, oid: refOid(name, context)! }));
  const wants = [
    ...new Set(
      [...request.wants, ...wanted.map(({ oid }) => oid)].map((oid) => graph.numbers.numberOfOid(oid)),
    ),
  ];
  // As git does: without wants there is no answer, not even the end of one.
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
  const filters = request.filter === undefined ? [] : parseFilter(request.filter)!;
  const { send, clientHas } = await selectObjects(
    graph,
    {
      wants: [...wants, ...history.moreWants],
      haves: [...negotiation.commonNumbers, ...history.unshallow],
      clientShallow: history.client,
      shallow: history.cut,
      filters,
      tags: request.includeTag ? tagRefs(graph, context.refs) : [],
    },
    signal,
  );
  const plan = {
    send,
    clientHas: request.thinPack ? thinBases(graph, clientHas, filters) : undefined,
    ofsDelta: request.ofsDelta,
  };
  lines.begin("packfile");
  yield lines.take();
  const out = new PacketBuffer(isStoredPack(graph, plan) ? undefined : graph.format);
  const writer = new PackWriter(graph, plan, out);
  const steps = writer.write();
  for (let first = true, done = false; !done; first = false) {
    done = steps.next().done === true;
    // The first step counts the objects.
    if (first && !request.noProgress) yield countingText(writer.totals.objects);
    if (done) {
      if (!request.noProgress) out.progress(totalsText(writer.totals));
      out.end();
    }
    for (let chunk = out.take(); chunk !== undefined; chunk = out.take()) {
      yield chunk;
      if (context.reuseChunks === true) out.recycle(chunk);
      signal?.throwIfAborted();
      // A consumer that never waits must not keep the thread.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  context.onTotals?.(writer.totals);
}

/** Collects the sections before the pack: delim packets between them, each line in side-band 1 for `sideband-all`. */
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

/** What is to become of the client's shallow history. All are object numbers. */
interface ShallowHistory {
  /** Whether the answer has a `shallow-info` section. */
  readonly announce: boolean;
  /** The client's own boundary as it says. */
  readonly client: ReadonlySet<number>;
  readonly shallow: readonly number[];
  readonly unshallow: readonly number[];
  /** Parents that the client lacks of commits which it has. */
  readonly moreWants: readonly number[];
  /** Where walking from the wants ends. */
  readonly cut: ReadonlySet<number>;
}

/** Works out `shallow` and `unshallow` (git: upload-pack.c, send_shallow_list, send_shallow and send_unshallow). */
async function shallowHistory(
  graph: ObjectGraph,
  request: FetchRequest,
  wants: readonly number[],
  context: FetchContext,
): Promise<ShallowHistory> {
  const { commits, numbers } = graph;
  const client = new Set<number>();
  for (const oid of request.shallows) {
    const number = numbers.numberOfOid(oid);
    // Git passes over what it does not know: no want leads there.
    if (number >= 0) client.add(number);
  }
  const boundary = await findBoundary(graph, request, wants, client, context);
  if (boundary === undefined) {
    const announce = request.shallows.length > 0 && client.size > 0;
    return { announce, client, shallow: [], unshallow: [], moreWants: [], cut: client };
  }
  const notShallow = new Set([...boundary.notShallow].map((row) => commits.numberOf(row)));
  const shallow = boundary.shallow
    .map((row) => commits.numberOf(row))
    .filter((number) => !client.has(number) && !notShallow.has(number));
  const unshallow = [...client].filter((number) => notShallow.has(number));
  const moreWants = new Set<number>();
  for (const number of unshallow) {
    const row = commits.rowOf(number);
    for (let i = commits.parentsFrom(row); i < commits.parentsFrom(row + 1); i++) {
      moreWants.add(commits.numberOf(commits.parentAt(i)));
    }
  }
  const cut = new Set([...client, ...shallow]);
  // Their parents are wanted: walking through them comes to the same, and leaves bitmaps usable.
  for (const number of unshallow) cut.delete(number);
  return { announce: true, client, shallow, unshallow, moreWants: [...moreWants], cut };
}

async function findBoundary(
  graph: ObjectGraph,
  request: FetchRequest,
  wants: readonly number[],
  client: ReadonlySet<number>,
  context: FetchContext,
): Promise<Boundary | undefined> {
  const { commits } = graph;
  const heads = commitRows(graph, wants);
  if (request.deepen !== undefined) {
    if (request.deepen >= INFINITE_DEPTH) {
      return { shallow: [], notShallow: new Set([...client].map((number) => commits.rowOf(number))) };
    }
    if (!request.deepenRelative) return boundaryByDepth(commits, heads, request.deepen);
    const reached = await commitsReachedFrom(graph, tipsOf(graph, context), context.signal);
    const rows = [...client]
      .filter((number) => hasBit(reached, number))
      .map((number) => commits.rowOf(number));
    return boundaryByDepth(commits, rows, request.deepen + 1);
  }
  if (request.deepenSince === undefined && request.deepenNots.length === 0) return undefined;
  const not = request.deepenNots.map((name) => graph.numbers.numberOfOid(resolveShort(name, context)!));
  const excluded = await commitsReachedFrom(
    graph,
    not.filter((number) => number >= 0),
    context.signal,
  );
  return boundaryBySelection(commits, heads, request.deepenSince, excluded);
}

async function commitsReachedFrom(
  graph: ObjectGraph,
  starts: readonly number[],
  signal: AbortSignal | undefined,
): Promise<Bitset> {
  const reached = graph.numbers.emptySet();
  await finishInSlices(reachCommits(graph, starts, reached), signal);
  return reached;
}

function tipsOf(graph: ObjectGraph, context: FetchContext): number[] {
  const oids = [...context.refs.values()].map((ref) => ref.oid);
  if (context.head !== undefined) oids.push(context.head);
  return oids.map((oid) => graph.numbers.numberOfOid(oid)).filter((number) => number >= 0);
}

/** The commits among these objects, and those that tags among them lead to; in order, one for each object. */
function commitRows(graph: ObjectGraph, objects: readonly number[]): number[] {
  const rows: number[] = [];
  for (const number of objects) {
    const target = peel(graph, number).at(-1)!;
    if (graph.types.typeOf(target) === COMMIT) rows.push(graph.commits.rowOf(target));
  }
  return rows;
}

/** A client that filters may lack what its commits reach: such objects are not to be bases. */
function thinBases(
  graph: ObjectGraph,
  clientHas: Bitset | undefined,
  filters: readonly Filter[],
): Bitset | undefined {
  if (clientHas === undefined || filters.length === 0) return clientHas;
  if (filters.some(({ kind }) => kind === "tree-depth" || kind === "object-type")) return undefined;
  const bases = clientHas.slice();
  andNotInto(bases, graph.types.of(BLOB));
  return bases;
}

/** Where a short ref name is looked for (gitrevisions, "refname"). */
const SHORT_NAMES = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];

/** What a full or short ref name stands for; undefined when it is none, or several (git: refs.c, expand_ref). */
function resolveShort(name: string, context: Pick<FetchContext, "refs" | "head">): Oid | undefined {
  const names = [...SHORT_NAMES.map((prefix) => prefix + name), `refs/remotes/${name}/HEAD`];
  const found = names.flatMap((full) => refOid(full, context) ?? []);
  return found.length === 1 ? found[0] : undefined;
}

function refOid(name: string, context: Pick<FetchContext, "refs" | "head">): Oid | undefined {
  return context.refs.get(name)?.oid ?? (name === "HEAD" ? context.head : undefined);
}

function countingText(objects: number): Buffer {
  const text =
    `Enumerating objects: ${objects}, done.\n` +
    `Counting objects: 100% (${objects}/${objects})${objects > 0 ? ", done." : ""}\n`;
  return encodeSideBand(SIDE_BAND.progress, Buffer.from(text));
}

/** As git's last line of progress: entries that were looked at count as reused, the others as pack-reused. */
function totalsText(totals: PackTotals): string {
  const { objects, verbatim, deltas, inflated } = totals;
  const reused = objects - verbatim - inflated;
  return `Total ${objects} (delta ${deltas}), reused ${reused} (delta ${deltas}), pack-reused ${verbatim}\n`;
}

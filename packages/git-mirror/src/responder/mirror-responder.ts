import type { FetchRequest, ObjectFormat } from "@devplat/git-protocol";
import { MAX_REQUEST_OIDS, finishInSlices, type FetchContext, type ObjectGraph } from "@devplat/git-store";
import type { Mirrors } from "../mirror/mirrors.ts";
import type { MirrorView } from "../mirror/mirror-view.ts";
import type { RepositoryId } from "../storage/repository-id.ts";
import { BuildLimit } from "./build-limit.ts";
import { missingOids } from "./oid-lookup.ts";
import { PRIMED_BYTES } from "./primed-stream.ts";
import type { Reachability } from "./reachability.ts";
import type { RecentTips, TipSource } from "./tips.ts";

/** A fetch of one repository. */
export interface MirrorRequest {
  readonly id: RepositoryId;
  readonly fetch: FetchRequest;
  readonly format: ObjectFormat;
  /** Only what these tips reach is served. */
  readonly tips: TipSource;
  /** Called if the mirror fails to open after the check has stopped waiting for it and returned `unservable`. */
  readonly onLateFailure: (error: unknown) => void;
}

/** The mirror can serve a fetch. The caller must release the view, or pass it to {@link MirrorResponder.respond}. */
export interface Servable {
  readonly kind: "servable";
  readonly view: MirrorView;
  readonly tips: RecentTips;
}

/** The mirror could serve a fetch if it had these wants and annotated tags. The caller must release the view. */
export interface MissingWants {
  readonly kind: "missing";
  readonly view: MirrorView;
  readonly tips: RecentTips;
  readonly wants: readonly string[];
}

/** Whether the mirror can serve a fetch. `unservable`: only the upstream can answer it. */
export type Servability = Servable | MissingWants | { readonly kind: "unservable" };

interface MissingTags {
  readonly graph: ObjectGraph;
  /** Numbers of the graph at that time. */
  readonly count: number;
  readonly missing: readonly string[];
}

/** Responds to fetches from mirrors. It serves only what recent tips reach, so never history that the upstream purged. */
export class MirrorResponder {
  readonly #mirrors: Mirrors;
  readonly #reachability: Reachability;
  readonly #limit = new BuildLimit();
  readonly #tags = new WeakMap<RecentTips, MissingTags>();

  constructor(mirrors: Mirrors, reachability: Reachability) {
    this.#mirrors = mirrors;
    this.#reachability = reachability;
  }

  /**
   * Checks whether the mirror can serve a fetch.
   *
   * @param given objects that the upstream has just sent for this request: they need not be reachable from a tip
   * @throws as {@link Mirror.view}
   */
  async check(request: MirrorRequest, given: ReadonlySet<string> = new Set()): Promise<Servability> {
    const { id, format, onLateFailure } = request;
    const view = await this.#mirrors.of(id).viewSoon(format, onLateFailure);
    if (view === undefined) return { kind: "unservable" };
    try {
      const result = await this.#checkView(request, view, given);
      if (result.kind === "unservable") view.release();
      return result;
    } catch (error) {
      view.release();
      throw error;
    }
  }

  /**
   * Returns the response with its framing. Releases the view at the end.
   *
   * @param onSelected called once, before the first chunk of a response with a pack: see {@link FetchContext.onSelected}
   * @throws before the first chunk if the response cannot be built, later only if stored data is damaged
   */
  async *respond(
    fetch: FetchRequest,
    { view, tips }: Servable,
    signal: AbortSignal,
    onSelected: (bytes: number) => void = () => undefined,
  ): AsyncGenerator<Buffer, void, undefined> {
    try {
      const context: FetchContext = { refs: tips.refs, head: tips.head, signal, onSelected };
      const { uploadPackV2Fetch } = await import("@devplat/git-store/upload-pack");
      yield* this.#limit.run(uploadPackV2Fetch(view.graph, fetch, context), signal, PRIMED_BYTES);
    } finally {
      view.release();
    }
  }

  async #checkView(
    { fetch, tips: source }: MirrorRequest,
    view: MirrorView,
    given: ReadonlySet<string>,
  ): Promise<Servability> {
    const { graph } = view;
    const tips = source.recent();
    const wants = [...fetch.wants, ...fetch.wantRefs.map((name) => oidOf(name, tips))];
    const resolved = wants.filter((oid) => oid !== undefined);
    const allResolved =
      wants.length > 0 && wants.length <= MAX_REQUEST_OIDS && resolved.length === wants.length;
    const withoutWants = { ...fetch, wants: [], wantRefs: [] };
    if (!allResolved || !(await isServable(graph, withoutWants, tips))) return { kind: "unservable" };
    const missing = await missingOids(graph, resolved);
    if (fetch.includeTag) missing.push(...this.#missingTags(graph, tips));
    if (missing.length > 0) return { kind: "missing", view, tips, wants: [...new Set(missing)] };
    const toCheck = resolved.filter((oid) => !given.has(oid));
    const isServed =
      (await isServable(graph, fetch, tips)) &&
      (await this.#reachability.areReachable(graph, toCheck, source));
    return isServed ? { kind: "servable", view, tips } : { kind: "unservable" };
  }

  /** Annotated tags that are not in the mirror, although their objects are. The upstream would send them. */
  #missingTags(graph: ObjectGraph, tips: RecentTips): readonly string[] {
    const { count } = graph.numbers;
    const known = this.#tags.get(tips);
    if (known?.graph === graph && known.count === count) return known.missing;
    const isHere = (oid: string): boolean => graph.numbers.numberOfOid(oid) >= 0;
    const missing = [...tips.refs.values()]
      .filter(({ name, peeled }) => name.startsWith("refs/tags/") && peeled !== undefined && isHere(peeled))
      .map(({ oid }) => oid)
      .filter((oid) => !isHere(oid));
    this.#tags.set(tips, { graph, count, missing });
    return missing;
  }
}

async function isServable(graph: ObjectGraph, fetch: FetchRequest, tips: RecentTips): Promise<boolean> {
  const context = { refs: tips.refs, head: tips.head };
  const { whyNotServableSteps } = await import("@devplat/git-store/upload-pack");
  return (await finishInSlices(whyNotServableSteps(graph, fetch, context))) === undefined;
}

function oidOf(ref: string, tips: RecentTips): string | undefined {
  return ref === "HEAD" ? tips.head : tips.refs.get(ref)?.oid;
}

import type { ObjectFormat } from "@devplat/git-protocol";
import { MAX_REQUEST_OIDS } from "@devplat/git-store";
import type { MirrorView } from "../mirror/mirror-view.ts";
import type { Mirrors } from "../mirror/mirrors.ts";
import type { RepositoryId } from "../storage/repository-id.ts";
import { missingOids } from "./oid-lookup.ts";
import type { Reachability } from "./reachability.ts";
import type { TipSource } from "./tips.ts";

/** Objects of one repository that an access decision is about. */
export interface LookupRequest {
  readonly id: RepositoryId;
  readonly format: ObjectFormat;
  readonly oids: readonly string[];
  /** Called with the error if opening the mirror fails after the answer. */
  readonly onLateFailure: (error: unknown) => void;
}

/** The two questions that an access decision may ask mirrors. */
export interface ObjectLookup {
  /** Whether all of the objects are in the mirror. @throws as {@link Mirror.view} */
  areHere(request: LookupRequest): Promise<boolean>;
  /** Whether each of the objects is one of the tips, or reachable from them. @throws as {@link Mirror.view} */
  areReachable(request: LookupRequest, tips: TipSource): Promise<boolean>;
}

export class MirrorLookup implements ObjectLookup {
  readonly #mirrors: Mirrors;
  readonly #reachability: Reachability;

  constructor(mirrors: Mirrors, reachability: Reachability) {
    this.#mirrors = mirrors;
    this.#reachability = reachability;
  }

  async areHere(request: LookupRequest): Promise<boolean> {
    const { oids } = request;
    if (oids.length > MAX_REQUEST_OIDS) return false;
    return await this.#ask(request, async ({ graph }) => (await missingOids(graph, oids)).length === 0);
  }

  async areReachable(request: LookupRequest, tips: TipSource): Promise<boolean> {
    const { oids } = request;
    if (oids.every((oid) => tips.isTip(oid))) return true;
    return await this.#ask(request, ({ graph }) => this.#reachability.areReachable(graph, oids, tips));
  }

  async #ask(
    { id, format, onLateFailure }: LookupRequest,
    question: (view: MirrorView) => Promise<boolean>,
  ): Promise<boolean> {
    const view = await this.#mirrors.of(id).viewSoon(format, onLateFailure);
    if (view === undefined) return false;
    try {
      return await question(view);
    } finally {
      view.release();
    }
  }
}

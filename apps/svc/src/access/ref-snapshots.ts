import { createHash, hash } from "node:crypto";
import type { Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import { MAX_REF_PREFIXES, decodeLsRefsResponse, type RefLine } from "@devplat/git-protocol";
import type { Ref } from "@devplat/git-store";

/** Bytes of an ls-refs answer that is kept for reading its tips; of longer ones no tips are known. */
export const MAX_TIPS_BYTES = 64 * 1024 * 1024;

/**
 * What a yes says of the repository's identity.
 * - `same`: it shares an object with the tips that were known, or there were none.
 * - `unproven`: it shares none, but some known names are outside of what it speaks of.
 * - `contradicted`: it, or it and the ones before it, speak of all names that were known, and agree on none.
 */
export type RepositoryIdentity = "same" | "unproven" | "contradicted";

/** Tips of recent yes answers, as they were at one time. */
export interface RecentTips {
  /** By full name; `HEAD` is not among them. */
  readonly refs: ReadonlyMap<string, Ref>;
  /** HEAD's commit. */
  readonly head: string | undefined;
  /** What all of them name. */
  readonly oids: ReadonlySet<string>;
}

interface Tip {
  readonly oid: string;
  readonly peeled: string | undefined;
  readonly view: View;
}

/** The last yes with one set of prefixes; the tips that it set share its time. */
interface View {
  seenAt: number;
  readonly digest: string;
  /** The state of all tips right after this answer; another one since makes them differ. */
  readonly epoch: number;
  /** Whether the prefixes cover all of `refs/tags/`. */
  readonly coversTags: boolean;
  /** Whether they cover all of `refs/heads/`. */
  readonly coversBranches: boolean;
}

/** Maximum number of lists of objects that are remembered as tips; the oldest goes first. */
const MAX_LISTS = 256;
const newKeys = (): BoundedMap<string, true> => new BoundedMap({ max: MAX_LISTS });

/** Sets of prefixes that are remembered; the oldest goes first, which only costs reading its next answer again. */
const MAX_VIEWS = 256;

/**
 * The tips of one repository in recent yes answers, whoever asked, by ref name. A yes replaces what its own prefixes
 * cover (clients ask with `ref-prefix`; a name outside says nothing).
 *
 * Shared history of moved tips cannot be seen here. So a yes that shares no object with what was known puts all older
 * tips in doubt: the name may stand for another repository by now. A tip in doubt counts for nothing until a yes speaks
 * of it, or agrees on another one that is in doubt.
 */
export class RefSnapshots {
  readonly #lifeMs: number;
  readonly #clock: Clock;
  readonly #refs = new Map<string, Tip>();
  /** The tips that name an object, themselves or peeled: mostly one, and then without a set around it. */
  readonly #byOid = new Map<string, Tip | Set<Tip>>();
  readonly #views = new BoundedMap<string, View>({ max: MAX_VIEWS });
  /** Tips that no yes has spoken of since one agreed on none of them. */
  readonly #doubted = new Map<string, Tip>();
  #epoch = 0;
  #identity = 0;
  #tagsDigest: { readonly epoch: number; readonly text: string } | undefined;
  /** Keys of lists that hold tips only: most requests want the same. */
  #onlyTips: { readonly of: RecentTips | undefined; readonly keys: BoundedMap<string, true> } = {
    of: undefined,
    keys: newKeys(),
  };
  #recent: { readonly epoch: number; readonly until: number; readonly tips: RecentTips } | undefined;

  constructor(lifeMs: number, clock: Clock) {
    this.#lifeMs = lifeMs;
    this.#clock = clock;
  }

  /**
   * Takes in a yes.
   *
   * @param prefixes of the request; none = all names
   * @param body the whole answer, which parses to its flush-pkt; undefined: too long to be kept
   */
  record(prefixes: readonly string[], body: Buffer | undefined): RepositoryIdentity {
    const covering = prefixes.length > MAX_REF_PREFIXES ? [] : [...new Set(prefixes)].toSorted();
    // A digest: thousands of prefixes are megabytes of text.
    const name = hash("sha256", JSON.stringify(covering), "base64");
    if (body === undefined) {
      this.clear();
      return "unproven";
    }
    const digest = hash("sha1", body, "base64");
    const before = this.#views.peek(name);
    if (before !== undefined && before.digest === digest && before.epoch === this.#epoch) {
      before.seenAt = this.#clock.monotonic();
      return "same";
    }
    const refs = decodeLsRefsResponse(body);
    const covers = coveringTest(covering);
    const continuity = this.#compare(refs, covers);
    for (const ref of this.#refs.keys()) if (covers(ref)) this.#remove(ref);
    const view = {
      seenAt: this.#clock.monotonic(),
      digest,
      epoch: ++this.#epoch,
      coversTags: coversAll(covering, "refs/tags/"),
      coversBranches: coversAll(covering, "refs/heads/"),
    };
    this.#views.set(name, view);
    for (const ref of refs) {
      if (ref.oid !== undefined) this.#add(ref.name, { oid: ref.oid, peeled: ref.peeled, view });
    }
    return continuity;
  }

  /** Rises whenever the tips are doubted or forgotten: what was begun before may be another repository's. */
  get identity(): number {
    return this.#identity;
  }

  /** Whether the object is a tip in a recent yes. */
  isTip(oid: string): boolean {
    const tips = this.#byOid.get(oid);
    if (tips === undefined) return false;
    const oldest = this.#clock.monotonic() - this.#lifeMs;
    if (!(tips instanceof Set)) return tips.view.seenAt >= oldest;
    return tips.values().some((tip) => tip.view.seenAt >= oldest);
  }

  /**
   * Whether all of these objects are tips in a recent authorization.
   *
   * @param key names the list of objects: the result for it is remembered until a tip changes
   */
  areTips(oids: readonly string[], key: string): boolean {
    const recent = this.recent();
    if (this.#onlyTips.of === recent && this.#onlyTips.keys.get(key) !== undefined) return true;
    if (!oids.every((oid) => this.isTip(oid))) return false;
    if (this.#onlyTips.of !== recent) this.#onlyTips = { of: recent, keys: newKeys() };
    this.#onlyTips.keys.set(key, true);
    return true;
  }

  /** The same object until a yes changes a tip or one becomes too old. */
  recent(): RecentTips {
    const now = this.#clock.monotonic();
    if (this.#recent?.epoch === this.#epoch && now <= this.#recent.until) return this.#recent.tips;
    const refs = new Map<string, Ref>();
    const oids = new Set<string>();
    let head: string | undefined;
    let until = Infinity;
    for (const [name, { oid, peeled, view }] of this.#refs) {
      const end = view.seenAt + this.#lifeMs;
      if (end < now) continue;
      until = Math.min(until, end);
      oids.add(oid);
      if (name === "HEAD") head = oid;
      else refs.set(name, peeled === undefined ? { name, oid } : { name, oid, peeled });
    }
    const tips = { refs, head, oids };
    this.#recent = { epoch: this.#epoch, until, tips };
    return tips;
  }

  /**
   * A digest of the tags, for answers whose content depends on them; undefined if no recent yes covers all tags: then
   * it is not known which there are.
   */
  tagsDigest(): string | undefined {
    if (!this.#tagsCovered()) return undefined;
    if (this.#tagsDigest?.epoch !== this.#epoch) {
      const all = createHash("sha256");
      const tags = [...this.#refs].filter(([name]) => name.startsWith("refs/tags/"));
      for (const [name, { oid }] of tags.toSorted(([a], [b]) => (a < b ? -1 : 1)))
        all.update(`${oid} ${name}\n`);
      this.#tagsDigest = { epoch: this.#epoch, text: all.digest("base64url") };
    }
    return this.#tagsDigest.text;
  }

  /** Whether one yes of the last so many milliseconds covers all branches and tags, and still counts. */
  surveyedWithin(ms: number): boolean {
    const oldest = this.#clock.monotonic() - Math.min(ms, this.#lifeMs);
    return this.#views
      .values()
      .some((view) => view.coversTags && view.coversBranches && view.seenAt >= oldest);
  }

  clear(): void {
    this.#doubted.clear();
    this.#forget();
  }

  #forget(): void {
    this.#refs.clear();
    this.#byOid.clear();
    this.#views.clear();
    this.#tagsDigest = undefined;
    this.#recent = undefined;
    this.#epoch++;
    this.#identity++;
  }

  /** Moves tips into doubt and out of it, as a yes calls for. */
  #compare(refs: readonly RefLine[], covers: (name: string) => boolean): RepositoryIdentity {
    const agrees = ({ oid, peeled }: RefLine): boolean => this.#knows(oid) || this.#knows(peeled);
    const doubted = new Set(this.#doubted.values().flatMap((tip) => oidsOf(tip)));
    const reassures = ({ oid = "", peeled = "" }: RefLine): boolean =>
      doubted.has(oid) || doubted.has(peeled);
    if (doubted.size > 0 && refs.some(reassures)) {
      for (const [name, tip] of this.#doubted) if (!this.#refs.has(name)) this.#add(name, tip);
      this.#doubted.clear();
      return "same";
    }
    for (const name of this.#doubted.keys()) if (covers(name)) this.#doubted.delete(name);
    if (this.#refs.size === 0 || refs.some(agrees)) {
      return doubted.size > 0 && this.#doubted.size === 0 ? "contradicted" : "same";
    }
    // An empty answer shares nothing either: it may be a repository made anew under the name.
    for (const [name, tip] of this.#refs) if (!covers(name)) this.#doubted.set(name, tip);
    // HEAD stands for some branch: a yes that speaks of those speaks of it.
    if (covers("refs/heads/")) this.#doubted.delete("HEAD");
    this.#forget();
    return this.#doubted.size === 0 ? "contradicted" : "unproven";
  }

  #tagsCovered(): boolean {
    const oldest = this.#clock.monotonic() - this.#lifeMs;
    return this.#views.values().some((view) => view.coversTags && view.seenAt >= oldest);
  }

  #knows(oid: string | undefined): boolean {
    return oid !== undefined && this.#byOid.has(oid);
  }

  #add(name: string, tip: Tip): void {
    this.#remove(name);
    this.#refs.set(name, tip);
    for (const oid of oidsOf(tip)) {
      const others = this.#byOid.get(oid);
      if (others instanceof Set) others.add(tip);
      else this.#byOid.set(oid, others === undefined ? tip : new Set([others, tip]));
    }
  }

  #remove(name: string): void {
    const tip = this.#refs.get(name);
    if (tip === undefined) return;
    this.#refs.delete(name);
    for (const oid of oidsOf(tip)) {
      const tips = this.#byOid.get(oid);
      if (tips instanceof Set) tips.delete(tip);
      if (tips === tip || (tips instanceof Set && tips.size === 0)) this.#byOid.delete(oid);
    }
  }
}

function oidsOf(tip: Tip): Set<string> {
  return new Set(tip.peeled === undefined ? [tip.oid] : [tip.oid, tip.peeled]);
}

function coversAll(prefixes: readonly string[], folder: string): boolean {
  return prefixes.length === 0 || prefixes.some((prefix) => folder.startsWith(prefix));
}

/** Whether a name is covered by prefixes; none cover all. Many prefixes are looked up by length. */
function coveringTest(prefixes: readonly string[]): (name: string) => boolean {
  if (prefixes.length === 0) return () => true;
  const set = new Set(prefixes);
  const lengths = [...new Set(prefixes.map((prefix) => prefix.length))];
  return (name) => lengths.some((length) => length <= name.length && set.has(name.slice(0, length)));
}

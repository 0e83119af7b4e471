import { createHash, hash } from "node:crypto";
import type { Clock } from "@devplat/base";
import { digestOf } from "./body-digest.ts";
import { BoundedMap } from "@devplat/base/bounded-map";
import { MAX_REF_PREFIXES, decodeLsRefsResponse, type RefLine } from "@devplat/git-protocol";
import type { Ref } from "@devplat/git-store";

/** Maximum bytes of an `ls-refs` response that is kept for its refs. Of longer ones no refs are known. */
export const MAX_REFS_BYTES = 64 * 1024 * 1024;

/**
 * Whether a response is about the same repository as the known refs.
 * - `verified`: it shares an object with the known refs, or there were none.
 * - `contested`: it shares none, but does not cover some of the known names.
 * - `replaced`: it, or it and the responses before it, cover all known names and share no object with them.
 */
export type RepositoryIdentity = "verified" | "contested" | "replaced";

/** Refs that the code host showed recently, as they were at one time. */
export interface RecentTips {
  /** By full name; `HEAD` is not among them. */
  readonly refs: ReadonlyMap<string, Ref>;
  /** HEAD's commit. */
  readonly head: string | undefined;
  /** The objects that all of them name. */
  readonly oids: ReadonlySet<string>;
}

interface Tip {
  readonly oid: string;
  readonly peeled: string | undefined;
  /** The response that showed it last. */
  snapshot: Snapshot;
}

/** The last response for one set of prefixes. The refs from it share its time. */
interface Snapshot {
  seenAt: number;
  readonly digest: string;
  /** Its prefixes, none: all names; undefined: too long to be kept. */
  readonly covering: readonly string[] | undefined;
  /** The epoch of all refs right after this response. A later response that changes a ref raises it. */
  epoch: number;
  /**
   * False if a response with prefixes outside of this one's showed some of its refs later, unchanged. Its next response is
   * then read again, so that all of its refs get the same time.
   */
  isWhole: boolean;
  /** Whether the prefixes cover all of `refs/tags/`. */
  readonly coversTags: boolean;
  /** Whether they cover all of `refs/heads/`. */
  readonly coversBranches: boolean;
}

/** Maximum number of lists of objects that are remembered as tips; the oldest goes first. */
const MAX_LISTS = 256;
const newKeys = (): BoundedMap<string, true> => new BoundedMap({ max: MAX_LISTS });

/** Maximum number of sets of prefixes. The oldest is removed first: its next response is then read again. */
const MAX_SNAPSHOTS = 256;
/** Maximum characters of a set of prefixes that is kept. Git's own are less than a hundred. */
const MAX_PREFIX_TEXT = 4096;

/**
 * The refs of one repository that the code host showed recently to any client. A response replaces the refs that its own
 * prefixes cover. Clients ask with `ref-prefix`: a response says nothing about other names.
 *
 * Whether moved refs share history cannot be seen here. So a response that shares no object with the known refs makes
 * all older refs contested: the name may stand for another repository now. A contested ref does not count until a
 * response covers it, or shares an object with another contested ref.
 *
 * It has more than 20 members, because its indexes by name, object and prefixes must change together.
 */
export class RefSnapshots {
  readonly #lifeMs: number;
  readonly #clock: Clock;
  readonly #refs = new Map<string, Tip>();
  /** The tips that name an object, directly or peeled. A single one has no set around it. */
  readonly #byOid = new Map<string, Tip | Set<Tip>>();
  readonly #snapshots = new BoundedMap<string, Snapshot>({ max: MAX_SNAPSHOTS });
  /** Tips that no response has covered since one shared no object with them. */
  readonly #contested = new Map<string, Tip>();
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
   * Records a response that authorized.
   *
   * @param prefixes of the request; none: all names
   * @param body the whole response, which parses to its flush-pkt; undefined: too long to be kept
   */
  record(prefixes: readonly string[], body: Buffer | undefined): RepositoryIdentity {
    const covering = prefixes.length > MAX_REF_PREFIXES ? [] : [...new Set(prefixes)].toSorted();
    // A digest: thousands of prefixes are megabytes of text.
    const text = JSON.stringify(covering);
    const name = hash("sha256", text, "base64");
    if (body === undefined) {
      this.clear();
      return "contested";
    }
    const digest = digestOf(body);
    const before = this.#snapshots.peek(name);
    if (before?.isWhole === true && before.digest === digest && before.epoch === this.#epoch) {
      this.#seenAgain(before);
      return "verified";
    }
    const refs = decodeLsRefsResponse(body);
    const covers = coveringTest(covering);
    const snapshot: Snapshot = {
      seenAt: this.#clock.monotonic(),
      digest,
      covering: text.length <= MAX_PREFIX_TEXT ? covering : undefined,
      epoch: this.#epoch,
      isWhole: true,
      coversTags: coversAll(covering, "refs/tags/"),
      coversBranches: coversAll(covering, "refs/heads/"),
    };
    if (this.#isUnchanged(refs, covers)) {
      this.#snapshots.set(name, snapshot);
      this.#moveTo(snapshot, refs);
      return "verified";
    }
    const identity = this.#compare(refs, covers);
    for (const ref of this.#refs.keys()) if (covers(ref)) this.#remove(ref);
    snapshot.epoch = ++this.#epoch;
    this.#snapshots.set(name, snapshot);
    for (const ref of refs) {
      if (ref.oid !== undefined) this.#add(ref.name, { oid: ref.oid, peeled: ref.peeled, snapshot });
    }
    return identity;
  }

  /** Raised when the refs become contested or are forgotten. What was begun before may be of another repository. */
  get identity(): number {
    return this.#identity;
  }

  /** Whether a recent ref names the object. */
  isTip(oid: string): boolean {
    const tips = this.#byOid.get(oid);
    if (tips === undefined) return false;
    const oldest = this.#clock.monotonic() - this.#lifeMs;
    if (!(tips instanceof Set)) return tips.snapshot.seenAt >= oldest;
    return tips.values().some((tip) => tip.snapshot.seenAt >= oldest);
  }

  /**
   * Whether recent refs name all of these objects.
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

  /** The same object until a ref changes or becomes too old. */
  recent(): RecentTips {
    const now = this.#clock.monotonic();
    if (this.#recent?.epoch === this.#epoch && now <= this.#recent.until) return this.#recent.tips;
    const refs = new Map<string, Ref>();
    const oids = new Set<string>();
    let head: string | undefined;
    let until = Infinity;
    for (const [name, { oid, peeled, snapshot }] of this.#refs) {
      const end = snapshot.seenAt + this.#lifeMs;
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
   * A digest of the tags, for responses whose content depends on them; undefined if no recent response covers all tags:
   * then it is not known which tags there are.
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

  /** Whether one response of the last so many milliseconds covers all branches and tags, and still counts. */
  surveyedWithin(ms: number): boolean {
    const oldest = this.#clock.monotonic() - Math.min(ms, this.#lifeMs);
    return this.#snapshots
      .values()
      .some((snapshot) => snapshot.coversTags && snapshot.coversBranches && snapshot.seenAt >= oldest);
  }

  clear(): void {
    this.#contested.clear();
    this.#forget();
  }

  #forget(): void {
    this.#refs.clear();
    this.#byOid.clear();
    this.#snapshots.clear();
    this.#tagsDigest = undefined;
    this.#recent = undefined;
    this.#epoch++;
    this.#identity++;
  }

  /** Renews the time of a response that came again, and of responses about a part of its refs. */
  #seenAgain(snapshot: Snapshot): void {
    const seenAt = this.#clock.monotonic();
    for (const other of this.#snapshots.values()) {
      if (other !== snapshot && !(other.epoch === this.#epoch && isWithin(other, snapshot))) continue;
      this.#countAgain(other);
      other.seenAt = seenAt;
    }
  }

  /** Forgets the list of recent tips if refs of this response are missing there, because they were too old. */
  #countAgain({ seenAt }: Snapshot): void {
    if (seenAt + this.#lifeMs < this.#clock.monotonic()) this.#recent = undefined;
  }

  /**
   * Whether the refs that a response covers are known as it shows them. Probes for HEAD come between the large responses
   * of clones: if each of them raised the epoch, the next large one would be read again, and all that is kept by epoch
   * be made again.
   */
  #isUnchanged(refs: readonly RefLine[], covers: (name: string) => boolean): boolean {
    if (this.#contested.size > 0) return false;
    const names = new Set<string>();
    for (const { name, oid, peeled } of refs) {
      if (oid === undefined) continue;
      const tip = this.#refs.get(name);
      if (tip?.oid !== oid || tip.peeled !== peeled || !covers(name)) return false;
      names.add(name);
    }
    if (names.size === 0) return false;
    let covered = 0;
    for (const name of this.#refs.keys()) if (covers(name)) covered++;
    return covered === names.size;
  }

  /** Gives known tips the time of the response that shows them again. */
  #moveTo(snapshot: Snapshot, refs: readonly RefLine[]): void {
    for (const { name } of refs) {
      const tip = this.#refs.get(name);
      if (tip === undefined || tip.snapshot === snapshot) continue;
      if (!isWithin(snapshot, tip.snapshot)) tip.snapshot.isWhole = false;
      this.#countAgain(tip.snapshot);
      tip.snapshot = snapshot;
    }
  }

  /** Makes tips contested or verified, as a response requires. */
  #compare(refs: readonly RefLine[], covers: (name: string) => boolean): RepositoryIdentity {
    const agrees = ({ oid, peeled }: RefLine): boolean => this.#knows(oid) || this.#knows(peeled);
    const contested = new Set(this.#contested.values().flatMap((tip) => oidsOf(tip)));
    const verifies = ({ oid = "", peeled = "" }: RefLine): boolean =>
      contested.has(oid) || contested.has(peeled);
    if (contested.size > 0 && refs.some(verifies)) {
      for (const [name, tip] of this.#contested) if (!this.#refs.has(name)) this.#add(name, tip);
      this.#contested.clear();
      return "verified";
    }
    for (const name of this.#contested.keys()) if (covers(name)) this.#contested.delete(name);
    if (this.#refs.size === 0 || refs.some(agrees)) {
      return contested.size > 0 && this.#contested.size === 0 ? "replaced" : "verified";
    }
    // An empty response shares nothing either: it may be a new repository under the same name.
    for (const [name, tip] of this.#refs) if (!covers(name)) this.#contested.set(name, tip);
    // HEAD stands for a branch: a response that covers branches covers it.
    if (covers("refs/heads/")) this.#contested.delete("HEAD");
    this.#forget();
    return this.#contested.size === 0 ? "replaced" : "contested";
  }

  #tagsCovered(): boolean {
    const oldest = this.#clock.monotonic() - this.#lifeMs;
    return this.#snapshots.values().some((snapshot) => snapshot.coversTags && snapshot.seenAt >= oldest);
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

/** Whether the prefixes of one response cover all names that those of another cover. */
function isWithin({ covering: inner }: Snapshot, { covering: outer }: Snapshot): boolean {
  if (inner === undefined || outer === undefined) return false;
  if (outer.length === 0) return true;
  return inner.length > 0 && inner.every((prefix) => outer.some((start) => prefix.startsWith(start)));
}

/** Whether a name is covered by prefixes; none cover all. Many prefixes are looked up by length. */
function coveringTest(prefixes: readonly string[]): (name: string) => boolean {
  if (prefixes.length === 0) return () => true;
  const set = new Set(prefixes);
  const lengths = [...new Set(prefixes.map((prefix) => prefix.length))];
  return (name) => lengths.some((length) => length <= name.length && set.has(name.slice(0, length)));
}

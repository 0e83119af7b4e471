import { BoundedMap } from "@devplat/base/bounded-map";
import type { SeedFigures } from "@devplat/git-mirror";
import type { RefSnapshots } from "../access/ref-snapshots.ts";
import type { RepositoryId } from "../access/repository-id.ts";

/** Maximum responses of a repository whose uses are counted. The longest unused begin again. */
const MAX_COUNTED = 1024;

/** State of one repository while the process runs. */
export class CachedRepository {
  readonly id: RepositoryId;
  readonly tips: RefSnapshots;
  /** Raised when the data is removed. Responses that began before must not be stored or shared after it. */
  generation = 0;
  /** Features of `fetch` in the code host's last advertisement; undefined: none was seen. */
  features: ReadonlySet<string> | undefined;
  hits = 0;
  misses = 0;
  bytesSaved = 0;
  /** CPU seconds that clients did not spend on indexing: an estimate. */
  secondsSaved = 0;
  lastFetchAt: number | undefined;
  /** Seeds as they were last looked at. Undefined: there was none. */
  seed: SeedFigures | undefined;
  /** Raised when this process makes or removes a seed. A look that began before must not set `seed` after it. */
  seedChanges = 0;
  /** From when a hit looks again whether the mirror is empty, in `clock.monotonic()`. */
  looksAgainAt = 0;
  /** Number of requests for each response since this process started, by key. */
  readonly uses = new BoundedMap<string, number>({ max: MAX_COUNTED });

  constructor(id: RepositoryId, tips: RefSnapshots) {
    this.id = id;
    this.tips = tips;
  }

  /** This process has removed all seeds. */
  seedsRemoved(): void {
    this.seed = undefined;
    this.seedChanges++;
  }

  /**
   * Whether more than one request has used a response since this process started. A response is kept in the form in which it
   * is sent from its second use on, because most responses are never used again.
   */
  isReused(key: string): boolean {
    return (this.uses.peek(key) ?? 0) > 1;
  }
}

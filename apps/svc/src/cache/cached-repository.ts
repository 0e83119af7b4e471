import type { RefSnapshots } from "../access/ref-snapshots.ts";
import type { RepositoryId } from "../access/repository-id.ts";

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
  lastFetchAt: number | undefined;

  constructor(id: RepositoryId, tips: RefSnapshots) {
    this.id = id;
    this.tips = tips;
  }
}

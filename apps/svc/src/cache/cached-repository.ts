import type { RepositoryId } from "./repository-id.ts";
import type { Tips } from "./tips.ts";

/** What the cache knows of one repository while the process runs. */
export class CachedRepository {
  readonly id: RepositoryId;
  readonly tips: Tips;
  /** Rises whenever the data is set aside: nothing that was begun before may be stored or shared after. */
  generation = 0;
  /** Sizes by file name. */
  readonly files = new Map<string, number>();
  /** Files that this process wrote or checked. */
  readonly sound = new Set<string>();
  /** What the code host's last advertisement says that `fetch` takes; undefined: none was seen. */
  features: ReadonlySet<string> | undefined;
  hits = 0;
  misses = 0;
  bytesSaved = 0;
  lastFetchAt: number | undefined;
  lastError: string | undefined;

  constructor(id: RepositoryId, tips: Tips) {
    this.id = id;
    this.tips = tips;
  }

  get sizeBytes(): number {
    return this.files.values().reduce((sum, size) => sum + size, 0);
  }
}

import type { CheckedFiles } from "./responses/checked-files.ts";
import type { RepositoryId } from "../access/repository-id.ts";
import type { RefSnapshots } from "../access/ref-snapshots.ts";

/** What the cache knows of one repository while the process runs. */
export class CachedRepository {
  readonly id: RepositoryId;
  readonly tips: RefSnapshots;
  /** Rises whenever the data is set aside: nothing that was begun before may be stored or shared after. */
  generation = 0;
  /** Sizes by file name. */
  readonly files = new Map<string, number>();
  /** Stored answers that are known to be whole. */
  readonly checked: CheckedFiles;
  /** What the code host's last advertisement says that `fetch` takes; undefined: none was seen. */
  features: ReadonlySet<string> | undefined;
  hits = 0;
  misses = 0;
  bytesSaved = 0;
  lastFetchAt: number | undefined;
  lastError: string | undefined;

  constructor(id: RepositoryId, tips: RefSnapshots, checked: CheckedFiles) {
    this.id = id;
    this.tips = tips;
    this.checked = checked;
  }

  get sizeBytes(): number {
    return this.files.values().reduce((sum, size) => sum + size, 0);
  }
}

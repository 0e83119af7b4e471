import { SecretStoreError, type SecretStore } from "@devplat/secret-store";

/** Maximum number of folders of one search. Without it one key press could list a large store for minutes. */
export const MAX_SEARCHED_FOLDERS = 500;
/** Maximum number of hits. More would not help the user. */
export const MAX_HITS = 200;
/** Concurrent listings. Each is one request to the store. */
const CONCURRENCY = 8;

export interface SearchResult {
  /** Paths of secrets whose path holds the words, sorted. */
  readonly paths: readonly string[];
  /** Whether a bound ended the search, or a folder could not be listed. */
  readonly incomplete: boolean;
}

/** Looks for secrets whose path holds every word of the query, in any case. No value is read. */
export async function searchNames(
  store: SecretStore,
  query: string,
  signal?: AbortSignal,
): Promise<SearchResult> {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const paths: string[] = [];
  let folders = [""];
  let searched = 0;
  let incomplete = false;
  while (words.length > 0 && folders.length > 0 && paths.length <= MAX_HITS) {
    const batch = folders.slice(0, Math.min(CONCURRENCY, MAX_SEARCHED_FOLDERS - searched));
    if (batch.length === 0) return result(paths, true);
    searched += batch.length;
    const found: string[] = [];
    let listed: readonly (string[] | undefined)[];
    try {
      listed = await Promise.all(batch.map((folder) => namesBelow(store, folder, signal)));
    } catch (error) {
      // The hits from before the failure or the time limit are shown.
      if (searched === batch.length) throw error;
      return result(paths, true);
    }
    for (const entry of listed) {
      if (entry === undefined) incomplete = true;
      else found.push(...entry);
    }
    const matching = found.filter(
      (path) => !path.endsWith("/") && words.every((word) => path.toLowerCase().includes(word)),
    );
    paths.push(...matching);
    folders = [...folders.slice(batch.length), ...found.filter((path) => path.endsWith("/"))];
  }
  return result(paths, incomplete || paths.length > MAX_HITS);
}

function result(paths: readonly string[], incomplete: boolean): SearchResult {
  return { paths: paths.toSorted().slice(0, MAX_HITS), incomplete };
}

/** Undefined if the folder cannot be listed; a fault of the whole store is thrown on. */
async function namesBelow(
  store: SecretStore,
  folder: string,
  signal?: AbortSignal,
): Promise<string[] | undefined> {
  try {
    const names = await store.list(folder, signal === undefined ? {} : { signal });
    return names.map((name) => `${folder}${name}`);
  } catch (error) {
    const own = error instanceof SecretStoreError && (error.code === "denied" || error.code === "not_found");
    if (!own || folder === "") throw error;
    return undefined;
  }
}

import type { RepositoryId } from "../../access/repository-id.ts";
import type { CoalescedFetch, FetchReader } from "./coalesced-fetch.ts";

/** Properties that two requests must have in common to share one fetch from the code host. */
export interface Shared {
  readonly id: RepositoryId;
  /** Key of the response; undefined if it is not stored. */
  readonly key: string | undefined;
  /** Counts how often the data of the repository was removed. */
  readonly generation: number;
  /** Identity of the repository under its name. */
  readonly identity: number;
  /** Whether stored responses may be sent to the client. */
  readonly mayRead: boolean;
}

/**
 * Decides which requests share a fetch: those with equal sharing keys. An older fetch can belong to a repository that had
 * this name before.
 */
export function sharingKey({ id, key, generation, identity, mayRead }: Shared): string {
  return `${id.key}/${key ?? ""}#${generation}.${identity}.${mayRead ? "tips" : "others"}`;
}

/**
 * Joins a fetch of another request, and waits until it is decided whether the fetch is shared.
 *
 * @returns undefined if it is not shared, or the caller left
 */
export async function joinWhenShared(
  fetch: CoalescedFetch,
  gone: AbortSignal,
): Promise<FetchReader | undefined> {
  const reader = fetch.join();
  const left = Promise.withResolvers<boolean>();
  const leave = (): void => {
    reader.leave();
    left.resolve(false);
  };
  gone.addEventListener("abort", leave, { once: true });
  if (gone.aborted) leave();
  if (await Promise.race([fetch.shared, left.promise])) return reader;
  reader.leave();
  return undefined;
}

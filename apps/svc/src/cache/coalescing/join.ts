import type { CoalescedFetch, FetchReader } from "./coalesced-fetch.ts";

/** Joins a fetch of another request when it may be shared. @returns undefined: it may not, or the caller left */
export async function joined(fetch: CoalescedFetch, gone: AbortSignal): Promise<FetchReader | undefined> {
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

import type { RepositoryId } from "../access/repository-id.ts";
import type { JoinOptions } from "../coordination/shared-fetches.ts";

/** A fetch from the code host that this instance makes for all instances. Its caller must complete it or give it up. */
export interface FetchForAll {
  /** Notes progress of the transfer. @param bytes received so far @param expectedBytes undefined: unknown */
  received(bytes: number, expectedBytes?: number): void;
  /** Calls back once another instance waits, immediately if one waits already. */
  onAwaited(callback: () => void): void;
  /** The data is stored here. It goes to the instances that wait, in the background. */
  complete(): void;
  /** There is no data for the others, so they fetch by themselves. */
  giveUp(): void;
}

/**
 * Next step of a request that needs data of the code host.
 * - `lead`: fetch it.
 * - `here`: another instance has fetched it. It can be read from the bucket, or is in the mirror. `fence` tells the fetch
 *   from others.
 * - `alone`: fetch it. Others do not hear of it. `late`: another instance fetches it too, and may end first.
 */
export type FetchTurn =
  | { readonly kind: "lead"; readonly fetch: FetchForAll }
  | { readonly kind: "here"; readonly fence: number }
  | { readonly kind: "alone"; readonly late?: LateArrival };

/**
 * Waits until the data of another instance can be read from the bucket. Never rejects.
 *
 * @param signal fires when the code host has responded to the own request
 * @returns fence of the fetch; undefined: the data will not be there, or the signal fired
 */
export type LateArrival = (signal: AbortSignal) => Promise<number | undefined>;

/** `since`: beginning of the request, whose whole wait is limited. `insteadOf`: fence of a turn whose data could not be read. */
export type FetchTurnOptions = JoinOptions;

/** Decides which instance fetches data from the code host that several of them need. */
export interface FetchSharing {
  /** Before the fetch of a response. @param key of the response */
  response(id: RepositoryId, key: string, options: FetchTurnOptions): Promise<FetchTurn>;
  /** Before the fetch of objects into the mirror. @param subject equal for fetches of the same objects */
  objects(id: RepositoryId, subject: string, options: FetchTurnOptions): Promise<FetchTurn>;
}

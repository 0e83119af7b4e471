import type { Clock, Logger } from "@devplat/base";
import type { Places } from "./agent-files/places.ts";

/** The surroundings of one process. */
export interface Host {
  readonly places: Places;
  readonly environment: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Time limit for checking a token with the store, in milliseconds. Default: the client's own limit. */
  readonly storeTimeoutMs?: number;
}

/** Limit while a user waits for a command that needs no answer of the store, in milliseconds. */
export const SHORT_STORE_TIMEOUT_MS = 5000;

import type { Clock, Logger } from "@devplat/base";
import type { Places } from "./agent-files/places.ts";

/** The surroundings of one process. */
export interface Host {
  readonly places: Places;
  readonly environment: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long the proof of a token may wait for the store, in milliseconds. Default: the client's own time. */
  readonly patienceMs?: number;
}

/** For what a person waits for without having asked the store for anything, in milliseconds. */
export const SHORT_PATIENCE_MS = 5000;

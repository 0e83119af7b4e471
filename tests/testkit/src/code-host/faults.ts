/** Which requests a fault meets. Every given condition must hold. */
export interface FaultMatch {
  /** Tested against the path without the query. */
  readonly path?: RegExp;
  /** A protocol-v2 command. */
  readonly command?: string;
  readonly method?: string;
  /** How many requests it meets before it is spent. Default: all. */
  readonly times?: number;
}

/**
 * Fault of a request. With `status` or `body` git does not run. Otherwise its response is damaged. Parts
 * combine: a delay, then a 200 whose body is cut.
 */
export interface Fault {
  readonly status?: number;
  /** Added to (or replacing those of) the answer. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Milliseconds before anything else happens. */
  readonly delayMs?: number;
  /** Settles before anything else happens, after the delay: a test says itself when. */
  readonly until?: Promise<unknown>;
  /** The request is read and never answered. */
  readonly hang?: true;
  /** The connection is reset once this many body bytes went out. */
  readonly cutAfterBytes?: number;
  /** Nothing more is sent once this many body bytes went out; the connection stays. */
  readonly stallAfterBytes?: number;
}

/** The injected faults, oldest first; the first that matches a request is the one that meets it. */
export class Faults {
  #injected: { match: FaultMatch; fault: Fault; left: number }[] = [];

  inject(match: FaultMatch, fault: Fault): void {
    this.#injected.push({ match, fault, left: match.times ?? Infinity });
  }

  clear(): void {
    this.#injected = [];
  }

  /** The fault for this request, if any; counts as one of its times. */
  take(request: { method: string; path: string; command?: string | undefined }): Fault | undefined {
    const found = this.#injected.find(
      ({ match, left }) =>
        left > 0 &&
        (match.method === undefined || match.method === request.method) &&
        (match.command === undefined || match.command === request.command) &&
        // A global or sticky expression keeps state between calls, so it is reset.
        (match.path === undefined ||
          new RegExp(match.path.source, match.path.flags.replace(/[gy]/g, "")).test(request.path)),
    );
    if (found !== undefined) found.left--;
    return found?.fault;
  }
}

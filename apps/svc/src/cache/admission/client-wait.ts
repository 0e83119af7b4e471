/** Content of the response of a client that waits. */
export interface WaitNotice {
  /** First bytes of its response, up to the line that begins the pack. */
  readonly beginning: Buffer;
  /** Works that come before its own. */
  readonly ahead: () => number;
}

/**
 * The wait of one client for its response, in all queues that its request comes to. It has no byte until it is told that
 * it waits. From then on it must be served.
 */
export class ClientWait {
  /** When the request came, in `clock.monotonic()`. */
  readonly since: number;
  /** Client that a place is for. */
  readonly client: string;
  /** First bytes of the response, if they do not depend on the objects; undefined: they are not known yet. */
  readonly beginning: Buffer | undefined;
  readonly #told = Promise.withResolvers<WaitNotice>();
  #isServed = false;

  constructor(parts: {
    readonly since: number;
    readonly client: string;
    readonly beginning: Buffer | undefined;
  }) {
    this.since = parts.since;
    this.client = parts.client;
    this.beginning = parts.beginning;
  }

  /** Resolves when the client is told. It may never resolve. */
  get told(): Promise<WaitNotice> {
    return this.#told.promise;
  }

  /** Whether the client has got a byte, or is about to: then it must not be refused. */
  get isServed(): boolean {
    return this.#isServed;
  }

  /** Tells the client that it waits. */
  tell(notice: WaitNotice): void {
    this.#isServed = true;
    this.#told.resolve(notice);
  }

  /** The response has begun in another way. */
  begun(): void {
    this.#isServed = true;
  }
}

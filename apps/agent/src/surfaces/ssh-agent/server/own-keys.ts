import { TimeLimit, type Clock, type Logger } from "@devplat/base";
import type { IdentitySource, SshIdentity } from "../identity.ts";

/** A list of keys is used again for so long, unless a source says that its keys have changed. In milliseconds. */
const CACHE_MS = 8000;
/** A source that needs longer lists the keys that it knows. In milliseconds. */
const LISTING_TIMEOUT_MS = 2000;

/** An own key, and the source that has it. */
export interface OwnKey {
  readonly source: string;
  readonly identity: SshIdentity;
}

/** The keys of all sources. A source that fails or hangs never hides the keys of another. */
export class OwnKeys {
  readonly #sources: () => readonly IdentitySource[];
  readonly #clock: Clock;
  readonly #logger: Logger;
  #isHidden = false;
  #cached: { readonly until: number; readonly keys: Promise<readonly OwnKey[]> } | undefined;

  constructor(sources: () => readonly IdentitySource[], clock: Clock, logger: Logger) {
    this.#sources = sources;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** `ssh-add -D` has hidden the keys. */
  get isHidden(): boolean {
    return this.#isHidden;
  }

  /** Hides the keys from all clients, or shows them again. */
  setHidden(hidden: boolean): void {
    this.#isHidden = hidden;
  }

  /** The keys in the order of the sources. Expired certificates are not among them. Never rejects. */
  async list(): Promise<readonly OwnKey[]> {
    if (this.#isHidden) return [];
    const now = this.#clock.monotonic();
    if (this.#cached === undefined || this.#cached.until <= now) {
      const keys = Promise.all(this.#sources().map((source) => this.#keysOf(source)));
      this.#cached = { until: now + CACHE_MS, keys: keys.then((each) => each.flat()) };
    }
    return this.#current(await this.#cached.keys);
  }

  /** The keys of the last listings, without a request. */
  known(): readonly OwnKey[] {
    return this.#current(
      this.#sources().flatMap((source) =>
        source.known().map((identity) => ({ source: source.name, identity })),
      ),
    );
  }

  /** Has the next call of {@link list} ask the sources. */
  clear(): void {
    this.#cached = undefined;
  }

  /** Forgets every private key and passphrase. */
  forget(): void {
    for (const source of this.#sources()) source.forget();
    this.clear();
  }

  async #keysOf(source: IdentitySource): Promise<OwnKey[]> {
    using limit = new TimeLimit(this.#clock, LISTING_TIMEOUT_MS);
    const { signal } = limit;
    const late = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
    const identities = await Promise.race([source.identities(signal), late]).catch((error: unknown) => {
      this.#logger.debug({ err: error, source: source.name }, "source of SSH keys did not list them");
      return source.known();
    });
    return identities.map((identity) => ({ source: source.name, identity }));
  }

  #current(keys: readonly OwnKey[]): readonly OwnKey[] {
    const now = this.#clock.now();
    return keys.filter(({ identity }) => (identity.certificateExpiresAt ?? Infinity) > now);
  }
}

/** A part that the first caller of `get` makes, for all callers. */
export class Late<Part> {
  readonly #make: () => Promise<Part>;
  #made: Promise<Part> | undefined;

  constructor(make: () => Promise<Part>) {
    this.#make = make;
  }

  /** @throws the error of making it; later calls throw the same error */
  async get(): Promise<Part> {
    return await (this.#made ??= this.#make());
  }

  /** For the shutdown: undefined if nobody called `get`, or if making it failed. Never rejects. */
  async ifMade(): Promise<Part | undefined> {
    return await this.#made?.catch(() => undefined);
  }
}

/** A part that is made when it is first asked for, once for all who ask. */
export class Late<Part> {
  readonly #make: () => Promise<Part>;
  #made: Promise<Part> | undefined;

  constructor(make: () => Promise<Part>) {
    this.#make = make;
  }

  /** @throws what making it throws, and then the same whenever it is asked for */
  async get(): Promise<Part> {
    return await (this.#made ??= this.#make());
  }

  /** For who ends it: undefined if nobody asked, or if it could not be made, which those who asked were told. Never rejects. */
  async ifMade(): Promise<Part | undefined> {
    return await this.#made?.catch(() => undefined);
  }
}

import { BoundedMap } from "@devplat/base/bounded-map";

const MAX_SECRETS = 10_000;

/**
 * The version of each secret that programs on this mount know: the one that was opened last, or that they have stored. A program
 * that saves by a rename has read this version, although the kernel may have seen a later one since.
 */
export class ReadVersions {
  readonly #versions = new BoundedMap<string, number>({ max: MAX_SECRETS });

  opened(path: string, version: number): void {
    this.#versions.set(path, version);
  }

  /** @param before the version that was replaced */
  stored(path: string, before: number, version: number): void {
    if ((this.#versions.get(path) ?? before) === before) this.#versions.set(path, version);
  }

  /** The user knows that there is another version. */
  forget(path: string): void {
    this.#versions.delete(path);
  }

  of(path: string): number | undefined {
    return this.#versions.get(path);
  }
}

/** Counts the names that no file can have, of each folder and secret that was read. */
export class OmittedNames {
  /** Those without one are not in it. */
  readonly #counts = new Map<string, number>();

  /** @returns whether the count of this folder or secret has changed */
  note(path: string, count: number): boolean {
    if ((this.#counts.get(path) ?? 0) === count) return false;
    if (count === 0) this.#counts.delete(path);
    else this.#counts.set(path, count);
    return true;
  }

  clear(): void {
    this.#counts.clear();
  }

  get total(): number {
    return this.#counts.values().reduce((sum, each) => sum + each, 0);
  }
}

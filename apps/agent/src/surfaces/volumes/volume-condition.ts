/** Whether the files of a volume are those of the store now, for the status. */
export class VolumeCondition {
  /** Why the last refresh or removal of the files has failed. */
  failure: string | undefined;
  #secrets = 0;
  #omitted: readonly string[] = [];

  /** Number of secrets in the files. */
  get secretCount(): number {
    return this.#secrets;
  }

  /** Why the files are not those of the store; undefined if they are. */
  get problem(): string | undefined {
    const omitted = this.#omitted.map((each) => JSON.stringify(each)).join(", ");
    const faults = [
      ...(this.failure === undefined ? [] : [this.failure]),
      ...(omitted === "" ? [] : [`no file can have the name of ${omitted}`]),
    ];
    return faults.length === 0 ? undefined : faults.join("; ");
  }

  /** @param omitted secrets and fields that have no file */
  filled(secrets: number, omitted: readonly string[]): void {
    this.#secrets = secrets;
    this.#omitted = omitted;
    this.failure = undefined;
  }

  /** The files are already those of the store. */
  kept(secrets: number): void {
    this.filled(secrets, this.#omitted);
  }

  emptied(): void {
    this.filled(0, []);
  }
}

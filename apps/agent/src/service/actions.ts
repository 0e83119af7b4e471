/** The actions of one command, in order. A dry run lists the same actions, and takes none of them. */
export class Actions {
  readonly #isDryRun: boolean;
  readonly #texts: string[] = [];

  constructor({ dryRun }: { readonly dryRun: boolean }) {
    this.#isDryRun = dryRun;
  }

  /** Texts of the actions, such as `started agent.service`. */
  get texts(): readonly string[] {
    return this.#texts;
  }

  /** Lists an action, and takes it unless this is a dry run. */
  async take(text: string, action: () => Promise<void>): Promise<void> {
    this.#texts.push(text);
    if (!this.#isDryRun) await action();
  }
}

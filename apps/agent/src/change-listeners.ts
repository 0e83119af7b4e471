/** Listeners of one kind of change. */
export class ChangeListeners {
  readonly #listeners = new Set<() => void>();

  /** Calls back after each change until the signal fires. */
  add(listener: () => void, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#listeners.add(listener);
    signal.addEventListener("abort", () => this.#listeners.delete(listener), { once: true });
  }

  changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

import type { EventStreams } from "@devplat/web-kit";

/** Counts the live streams of all surfaces. */
export class OpenStreams {
  readonly #surfaces = new Set<Pick<EventStreams, "size">>();

  /** Counts those of another surface too. */
  add(streams: Pick<EventStreams, "size">): void {
    this.#surfaces.add(streams);
  }

  get size(): number {
    return [...this.#surfaces].reduce((sum, { size }) => sum + size, 0);
  }
}

import { createGunzip, type Gunzip } from "node:zlib";
import { GitError } from "../../upstream/errors.ts";

/** Bytes of inflated data that wait to be read; inflating pauses then. */
const READ_AHEAD_BYTES = 16 * 1024;

const NOTHING = Buffer.alloc(0);

/**
 * Inflates chunks of gzip as they are asked for: a small body that inflates to a huge one costs no more than what its
 * reader takes.
 */
export class InflatedBody {
  readonly #source: () => Promise<Buffer | undefined>;
  readonly #gunzip: Gunzip;
  #writing = false;
  #ended = false;
  #wake: () => void = () => undefined;

  /** @param source gives the next compressed bytes; undefined after the last */
  constructor(source: () => Promise<Buffer | undefined>) {
    this.#source = source;
    this.#gunzip = createGunzip({ readableHighWaterMark: READ_AHEAD_BYTES } as object);
    this.#gunzip.on("readable", () => this.#wake());
    this.#gunzip.on("end", () => {
      this.#ended = true;
      this.#wake();
    });
    this.#gunzip.on("error", () => this.#wake());
  }

  /**
   * The next bytes; undefined after the last. None at all when a piece of the source inflated to nothing, so that the
   * caller can give up a source that goes on like that.
   *
   * @throws GitError `body_malformed`, and what the source throws
   */
  async next(): Promise<Buffer | undefined> {
    for (let fed = false; ;) {
      const bytes = this.#gunzip.read() as Buffer | null;
      if (bytes !== null) return bytes;
      const cause = this.#gunzip.errored;
      if (cause !== null) {
        throw new GitError("body_malformed", 400, "the request's body is not gzip, or it is cut", {
          remedy: "final",
          cause,
        });
      }
      if (this.#ended) return undefined;
      if (this.#writing) await new Promise<void>((resolve) => (this.#wake = resolve));
      else if (fed) return NOTHING;
      else {
        await this.#feed();
        fed = true;
      }
    }
  }

  /** Frees the memory of the inflater. Nothing may be read after it. */
  close(): void {
    this.#gunzip.destroy();
  }

  async #feed(): Promise<void> {
    const bytes = await this.#source();
    this.#writing = true;
    if (bytes === undefined) {
      this.#gunzip.end();
      return;
    }
    this.#gunzip.write(bytes, () => {
      this.#writing = false;
      this.#wake();
    });
  }
}

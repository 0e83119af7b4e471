import type { Clock, Logger } from "@devplat/base";
import { fileSignature } from "../../../agent-files/file-signature.ts";
import { linkChain } from "../../../agent-files/link-chain.ts";
import { TargetWatch } from "../../../sync/target/target-watch.ts";

export interface FileWatchParts {
  readonly file: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Notices when a file changes, appears or disappears. */
export class FileWatch {
  readonly #file: string;
  readonly #watch: TargetWatch;
  #signature: string | undefined;

  constructor(parts: FileWatchParts, onChange: () => void) {
    this.#file = parts.file;
    this.#watch = new TargetWatch({ ...parts, isTouched: () => this.look() });
    this.#watch.onTouched(onChange);
  }

  /** The file was there at the last look. */
  get isThere(): boolean {
    return this.#signature !== undefined;
  }

  /** Whether the file differs from the one at the last look. */
  async look(): Promise<boolean> {
    const before = this.#signature;
    this.#signature = await fileSignature(this.#file);
    return this.#signature !== before;
  }

  /**
   * Watches the folder of the file and, if it is a link, those on the way to its target. Repeat it after the folder may have
   * been made, or the link may lead elsewhere.
   */
  async follow(): Promise<void> {
    this.#watch.follow(await linkChain(this.#file));
  }

  close(): void {
    this.#watch.close();
  }
}

import { messageOf, systemCode, type Logger } from "@devplat/base";
import type { CachedRepository } from "./cached-repository.ts";

/** Logs failures of the cache: one line per repository and kind of failure, until something worked again. */
export class FaultLog {
  readonly #logger: Logger;
  readonly #logged = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  once(repository: CachedRepository | undefined, error: unknown, message: string): void {
    const code = systemCode(error) ?? messageOf(error);
    if (repository !== undefined) repository.lastError = `${message} (${code})`;
    const line = `${repository?.id.key ?? ""} ${code} ${message}`;
    if (this.#logged.has(line)) return;
    this.#logged.add(line);
    this.#logger.error({ repo: repository?.id.key ?? "", code }, message);
  }

  forget(repository: CachedRepository): void {
    for (const line of this.#logged) if (line.startsWith(`${repository.id.key} `)) this.#logged.delete(line);
  }
}

import { messageOf, systemCode, type LogFields, type Logger } from "@devplat/base";
import type { RepositoryId } from "../access/repository-id.ts";

/** The repository that a fault is about. */
interface Subject {
  readonly id: RepositoryId;
}

/** Logs failures of the cache: one line per repository and kind of failure, until something worked again. */
export class FaultLog {
  readonly #logger: Logger;
  readonly #logged = new Set<string>();
  readonly #lastErrors = new Map<string, string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** A store that is left alone does not count as a fault of a repository. Its state is logged elsewhere. */
  once(subject: Subject | undefined, error: unknown, message: string): void {
    if (Object(error).code === "circuit_open") return;
    const code = systemCode(error) ?? messageOf(error);
    if (subject !== undefined) this.#lastErrors.set(subject.id.key, `${message} (${code})`);
    const line = `${subject?.id.key ?? ""} ${code} ${message}`;
    if (this.#logged.has(line)) return;
    this.#logged.add(line);
    this.#logger.error({ repo: subject?.id.key ?? "", code }, message);
  }

  /** Logs damage that was found and quarantined, each time. */
  damaged({ id }: Subject, message: string, fields: LogFields): void {
    this.#lastErrors.set(id.key, message);
    this.#logger.warn({ repo: id.key, ...fields }, message);
  }

  /** The last fault of a repository: one sentence, no secret; undefined: there was none. */
  lastError({ id }: Subject): string | undefined {
    return this.#lastErrors.get(id.key);
  }

  /** Something worked: the next fault of the repository is logged again. */
  forget({ id }: Subject): void {
    for (const line of this.#logged) if (line.startsWith(`${id.key} `)) this.#logged.delete(line);
  }
}

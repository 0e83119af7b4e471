import type { Logger } from "@devplat/base";
import type { ObjectFormat } from "@devplat/git-protocol";
import type { CachedRepository } from "./cached-repository.ts";
import type { FaultLog } from "./fault-log.ts";
import { RESPONSES_FOLDER, type OpenResponse, type ResponseFiles } from "./response-files.ts";
import { isSound } from "./verify-answer.ts";

/** Opens stored answers that are known to be whole, and sets the others aside. Never throws. */
export class StoredAnswers {
  readonly #files: ResponseFiles;
  readonly #faults: FaultLog;
  readonly #logger: Logger;

  constructor(files: ResponseFiles, faults: FaultLog, logger: Logger) {
    this.#files = files;
    this.#faults = faults;
    this.#logger = logger;
  }

  /** Undefined: there is none; `failed`: it is damaged, or the disk does not work. */
  async open(
    repository: CachedRepository,
    key: string,
    format: ObjectFormat,
  ): Promise<OpenResponse | "failed" | undefined> {
    const { generation } = repository;
    let file: OpenResponse | undefined;
    try {
      const opened = (file = await this.#files.open(repository.id, key));
      if (opened === undefined) return undefined;
      const sound = await repository.checked.isSound(key, async () =>
        this.#check(repository, key, opened, format),
      );
      if (sound && generation === repository.generation) {
        repository.files.set(key, opened.size);
        return opened;
      }
      await opened.close();
      return sound ? undefined : "failed";
    } catch (error) {
      await file?.close().catch(() => undefined);
      this.#faults.once(
        repository,
        error,
        "a stored answer cannot be read; the request goes to the code host",
      );
      return "failed";
    }
  }

  async #check(
    repository: CachedRepository,
    key: string,
    file: OpenResponse,
    format: ObjectFormat,
  ): Promise<boolean> {
    const { generation } = repository;
    if (await isSound(file, format)) return true;
    if (generation !== repository.generation) return false;
    await this.#files.setFileAside(repository.id, key);
    repository.files.delete(key);
    const message = "a stored answer is damaged and was set aside";
    this.#logger.warn(
      { repo: repository.id.key, file: `${RESPONSES_FOLDER}/${repository.id.key}/${key}` },
      message,
    );
    repository.lastError = message;
    return false;
  }
}

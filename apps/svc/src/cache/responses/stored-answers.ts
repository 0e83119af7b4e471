import type { Logger } from "@devplat/base";
import { StoredDataDamaged } from "./block-sums.ts";
import type { CachedRepository } from "../cached-repository.ts";
import type { FaultLog } from "../fault-log.ts";
import { RESPONSES_FOLDER, type OpenResponse, type ResponseFiles } from "./response-files.ts";
import { isSound } from "./verify-answer.ts";

/**
 * Opens stored answers, and sets damaged ones aside: when one is opened, when it is read through for the first time, and
 * when a slice of it is about to be sent. Never throws.
 */
export class StoredAnswers {
  readonly #files: ResponseFiles;
  readonly #faults: FaultLog;
  readonly #logger: Logger;

  constructor(files: ResponseFiles, faults: FaultLog, logger: Logger) {
    this.#files = files;
    this.#faults = faults;
    this.#logger = logger;
  }

  /**
   * Opens a stored answer. Its first slice is checked; later ones are before they are given out.
   *
   * @returns undefined: there is none; `failed`: it is damaged, or the disk does not work
   */
  async open(repository: CachedRepository, key: string): Promise<OpenResponse | "failed" | undefined> {
    const { generation } = repository;
    let file: OpenResponse | undefined;
    try {
      const opened = (file = await this.#files.open(repository.id, key));
      if (opened === undefined) return undefined;
      if (!(await repository.checked.isSound(key, async () => isSound(opened)))) {
        throw new StoredDataDamaged("a stored answer does not match its checksums");
      }
      const first = await opened.slice(0);
      if (generation === repository.generation) return this.#watched(repository, key, opened, first);
      first.release();
      await opened.close();
      return undefined;
    } catch (error) {
      if (error instanceof StoredDataDamaged) await this.#setAside(repository, key, file?.inode, generation);
      else {
        this.#faults.once(
          repository,
          error,
          "a stored answer cannot be read; the request goes to the code host",
        );
      }
      await file?.close().catch(() => undefined);
      return "failed";
    }
  }

  /** The file, set aside as soon as a slice of it turns out damaged. */
  #watched(
    repository: CachedRepository,
    key: string,
    file: OpenResponse,
    first: Awaited<ReturnType<OpenResponse["slice"]>>,
  ): OpenResponse {
    const { generation } = repository;
    let ready: typeof first | undefined = first;
    const onFailure = async (error: unknown): Promise<never> => {
      if (error instanceof StoredDataDamaged) await this.#setAside(repository, key, file.inode, generation);
      throw error;
    };
    return {
      ...file,
      slice: (offset) => {
        if (offset === 0 && ready !== undefined) {
          const given = ready;
          ready = undefined;
          return given;
        }
        const slice = file.slice(offset);
        return slice instanceof Promise ? slice.catch(onFailure) : slice;
      },
      close: async () => {
        ready?.release();
        ready = undefined;
        await file.close();
      },
    };
  }

  /** Several requests may find the same damage: it is said once. */
  async #setAside(
    repository: CachedRepository,
    key: string,
    inode: number | undefined,
    generation: number,
  ): Promise<void> {
    if (generation !== repository.generation) return;
    repository.checked.forget(key);
    try {
      if (!(await this.#files.setFileAside(repository.id, key, inode))) return;
    } catch (error) {
      this.#faults.once(repository, error, "a damaged stored answer cannot be set aside");
      return;
    }
    repository.files.delete(key);
    const message = "a stored answer is damaged and was set aside";
    const file = `${RESPONSES_FOLDER}/${repository.id.key}/${key}`;
    this.#logger.warn({ repo: repository.id.key, file }, message);
    repository.lastError = message;
  }
}

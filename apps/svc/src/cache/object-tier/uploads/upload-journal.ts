import { mkdir, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { TEMPORARY_SUFFIX, folderNames, ifExists } from "@devplat/base";
import { readSealed, writeSealed } from "@devplat/base/sealed-file";
import { UPLOADS_FOLDER } from "../../responses/response-folders.ts";
import { decodeJob, encodeJob, jobName, type UploadJob } from "./upload-job.ts";

const JOB_FILE = /^[0-9a-f]{40}\.json$/;

/** Jobs on disk: one sealed file for each. A job is removed when it is complete, so a crash repeats it. */
export class UploadJournal {
  readonly #folder: string;
  #isReady = false;

  /** @param localPath `cache.local_path` */
  constructor(localPath: string) {
    this.#folder = join(localPath, UPLOADS_FOLDER);
  }

  /** @param addedAt milliseconds since the epoch. @throws a system error */
  async write(job: UploadJob, addedAt: number): Promise<void> {
    if (!this.#isReady) await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    this.#isReady = true;
    await writeSealed(this.#path(job), encodeJob(job, addedAt));
  }

  /** @throws a system error */
  async remove(job: UploadJob): Promise<void> {
    await ifExists(unlink(this.#path(job)));
  }

  /** All jobs, oldest first. Removes damaged files and leftovers of a crash. @throws a system error */
  async read(): Promise<readonly UploadJob[]> {
    const found: { readonly job: UploadJob; readonly addedAt: number }[] = [];
    for (const file of await folderNames(this.#folder)) {
      const path = join(this.#folder, file);
      const entry = JOB_FILE.test(file) ? decodeJob(await readSealed(path)) : undefined;
      if (entry !== undefined && `${jobName(entry.job)}.json` === file) found.push(entry);
      // A lost job costs an upload, which the next use of its response makes good.
      else if (JOB_FILE.test(file) || file.endsWith(TEMPORARY_SUFFIX)) await rm(path, { force: true });
    }
    return found.toSorted((a, b) => a.addedAt - b.addedAt).map(({ job }) => job);
  }

  #path(job: UploadJob): string {
    return join(this.#folder, `${jobName(job)}.json`);
  }
}

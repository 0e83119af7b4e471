import type { FetchAnswer, FetchJob } from "../cache/fetch-plan.ts";
import { isStorable } from "./repository-id.ts";
import type { ResponseFiles } from "../cache/responses/response-files.ts";
import type { StoredObjects } from "../cache/stored-objects.ts";

/** What a survey asks for: the refs that make history visible. */
export const SURVEY_PREFIXES: readonly string[] = ["HEAD", "refs/heads/", "refs/tags/"];
/**
 * Milliseconds in which a survey is not repeated: a fleet that checks out one id which no branch has sets off one in
 * this time. A branch that was pushed since is forwarded meanwhile, as it would be without.
 */
const SURVEY_LIFE_MS = 10_000;

/**
 * Decides whether a request may be answered from what is stored: a tip in a recent yes must be, or reach, each object
 * that it wants (spec/svc.md section 2.1). A check-out by id sends no `ls-refs`; so where the data is here and only such
 * a yes is missing, the code host is asked for its branches and tags, with the caller's own credential.
 */
export class Visibility {
  readonly #objects: StoredObjects;
  readonly #files: ResponseFiles;

  constructor(objects: StoredObjects, files: ResponseFiles) {
    this.#objects = objects;
    this.#files = files;
  }

  async maySee(job: FetchJob<FetchAnswer>): Promise<boolean> {
    if (await this.#objects.maySee(job)) return true;
    const { repository } = job;
    if (repository.tips.surveyedWithin(SURVEY_LIFE_MS) || !(await this.#isHere(job))) return false;
    try {
      await job.learnRefs(SURVEY_PREFIXES);
    } catch {
      // The fetch itself is forwarded then, and shows what is wrong.
      return false;
    }
    return await this.#objects.maySee(job);
  }

  /** Whether a stored answer, or every object that is wanted, is here. */
  async #isHere({ repository, key, wants, format }: FetchJob<FetchAnswer>): Promise<boolean> {
    if (key !== undefined && isStorable(repository.id) && (await this.#files.has(repository.id, key))) {
      return true;
    }
    return wants.length > 0 && (await this.#objects.holdsAll(repository, format, wants));
  }
}

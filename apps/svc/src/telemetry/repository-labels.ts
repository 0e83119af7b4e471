import { foldCase } from "../repository-name.ts";

/** Unlisted repositories that keep their own series, so that strangers cannot create series without bound. */
export const MAX_UNLISTED_SERIES = 200;

export interface RepositoryLabels {
  readonly owner: string;
  readonly repo: string;
}

/** Labels of the sum of all further unlisted repositories. */
const SUMMED: RepositoryLabels = { owner: "", repo: "" };

/**
 * Chooses the `owner` and `repo` labels of per-repository series (spec/svc.md section 2.6): a repository that is or
 * was listed keeps its own; so do the first {@link MAX_UNLISTED_SERIES} others that the code host answered with 200.
 */
export class RepositoryLabelling {
  readonly #listed = new Map<string, RepositoryLabels>();
  readonly #unlisted = new Map<string, RepositoryLabels>();

  listed(owner: string, name: string): RepositoryLabels {
    const key = keyOf(owner, name);
    const known = this.#listed.get(key);
    if (known !== undefined) return known;
    const labels = { owner, repo: name };
    this.#listed.set(key, labels);
    return labels;
  }

  /** @param answered whether the code host answered this request with 200 */
  unlisted(owner: string, name: string, answered: boolean): RepositoryLabels {
    const key = keyOf(owner, name);
    const known = this.#listed.get(key) ?? this.#unlisted.get(key);
    if (known !== undefined) return known;
    if (!answered || this.#unlisted.size >= MAX_UNLISTED_SERIES) return SUMMED;
    const labels = { owner: foldCase(owner), repo: foldCase(name) };
    this.#unlisted.set(key, labels);
    return labels;
  }
}

function keyOf(owner: string, name: string): string {
  return foldCase(`${owner}/${name}`);
}

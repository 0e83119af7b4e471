import { foldCase } from "../repository-name.ts";

/** Names that may become folders: what code hosts allow, and nothing that a file system reads otherwise. */
const FOLDER_SAFE = /^[a-z0-9_][a-z0-9._-]{0,127}$/;

/** A repository as the cache knows it: owner and name in lower case, because code hosts do not tell cases apart. */
export interface RepositoryId {
  readonly owner: string;
  readonly name: string;
  /** `owner/name` */
  readonly key: string;
}

export function repositoryId(owner: string, name: string): RepositoryId {
  const id = { owner: foldCase(owner), name: foldCase(name) };
  return { ...id, key: `${id.owner}/${id.name}` };
}

/** Whether data of the repository may be kept on disk under its own name. `_responses` is the cache's own folder. */
export function isStorable(id: RepositoryId): boolean {
  return FOLDER_SAFE.test(id.owner) && id.owner !== "_responses" && /^[a-z0-9._-]{1,128}$/.test(id.name);
}

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

/** The cache's own folders. */
const OWN_FOLDERS: ReadonlySet<string> = new Set(["_responses", "_accel", "_uploads"]);

/** Whether data of the repository may be kept on disk under its own name. */
export function isStorable(id: RepositoryId): boolean {
  const isNameSafe = /^[a-z0-9._-]{1,128}$/.test(id.name) && id.name !== "." && id.name !== "..";
  return FOLDER_SAFE.test(id.owner) && !OWN_FOLDERS.has(id.owner) && isNameSafe;
}

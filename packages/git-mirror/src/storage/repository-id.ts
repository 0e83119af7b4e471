/** Identity of a repository, in lower case, because code hosts ignore case. Owner and name can be names of folders. */
export interface RepositoryId {
  readonly owner: string;
  readonly name: string;
  /** `owner/name` */
  readonly key: string;
}

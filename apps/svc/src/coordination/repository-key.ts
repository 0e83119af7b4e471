import type { RepositoryId } from "../access/repository-id.ts";

/**
 * Key of a repository in data that instances share, which may be for different code hosts: address of the code host without
 * its scheme, then owner and name in lower case.
 */
export function repositoryKey(hostUrl: string, { key }: RepositoryId): string {
  return `${codeHostKey(hostUrl)}/${key}`;
}

/** Address of a code host without its scheme. */
export function codeHostKey(hostUrl: string): string {
  const { host, pathname } = new URL(hostUrl);
  return host + pathname.replace(/\/+$/, "");
}

/** The repository of a key. Undefined: it is at another code host. */
export function repositoryOfKey(
  hostUrl: string,
  key: string,
): { readonly owner: string; readonly name: string } | undefined {
  const [name = "", owner = ""] = key.split("/").toReversed();
  return key === repositoryKey(hostUrl, { owner, name, key: `${owner}/${name}` })
    ? { owner, name }
    : undefined;
}

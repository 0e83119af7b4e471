/** A git request's path, split: `/{owner}/{name}[.git]/{tail}`. */
export interface RepositoryPath {
  readonly owner: string;
  readonly name: string;
  /** Path after the repository, without the leading slash: `info/refs`, `objects/pack/…`, … */
  readonly tail: string;
}

const TAILS =
  /^\/([^/]+)\/([^/]+?)(?:\.git)?\/(info\/refs|git-upload-pack|git-receive-pack|HEAD|objects\/.+)$/;

/** Splits the path of a smart or dumb HTTP request (gitprotocol-http(5)); undefined for any other path. */
export function parseRepositoryPath(path: string): RepositoryPath | undefined {
  const found = TAILS.exec(path);
  if (found === null) return undefined;
  const [, owner = "", name = "", tail = ""] = found;
  return { owner, name, tail };
}

/** The service that a smart request is for; undefined for dumb HTTP. */
export function serviceOf(tail: string, query: URLSearchParams): string | undefined {
  if (tail === "git-upload-pack" || tail === "git-receive-pack") return tail;
  return tail === "info/refs" ? (query.get("service") ?? undefined) : undefined;
}

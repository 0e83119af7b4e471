/**
 * - `public`: everybody reads, a user with access writes.
 * - `private`: 401 without a credential, 404 for a credential without access (as GitHub hides it).
 * - `gone`: 404 for everybody. `forbidden`: 403 for everybody.
 */
export type Visibility = "public" | "private" | "gone" | "forbidden";

export interface Repository {
  readonly id: number;
  readonly owner: string;
  readonly name: string;
  /** The bare repository's folder. */
  readonly path: string;
  readonly visibility: Visibility;
}

interface User {
  readonly login: string;
  /** The code host's own number of the account. */
  readonly id: number;
  /** Rights of the token with git. With `none`, it has only the rights of everybody. */
  readonly level: "none" | "read" | "write";
  /** Lower-case "owner/name"; undefined: all. */
  readonly repositories: ReadonlySet<string> | undefined;
}

/** Content of a request's `Authorization` header. */
export type Caller = { kind: "anonymous" } | { kind: "unknown" } | { kind: "user"; user: User };

/** `allowed`, or the refusal's status. */
export type Judgement =
  | { allowed: true; repository: Repository }
  | { allowed: false; status: 401 | 403 | 404 }
  | { allowed: false; status: 301; owner: string; name: string };

/** Repositories, users, and who may do what: the code host's access control, with GitHub's answers. */
export class Access {
  readonly #repositories = new Map<string, Repository>();
  readonly #moved = new Map<string, string>();
  readonly #users = new Map<string, User>();
  /** By login. */
  readonly #accounts = new Map<string, number>();
  #lastId = 0;
  #lastAccount = 100;

  add(owner: string, name: string, path: string, visibility: Visibility): Repository {
    const repository = { id: ++this.#lastId, owner, name, path, visibility };
    this.#repositories.set(key(owner, name), repository);
    this.#moved.delete(key(owner, name));
    return repository;
  }

  addUser(
    login: string,
    token: string,
    repositories: readonly string[] | undefined,
    level: User["level"] = "write",
  ): void {
    const limited = repositories && new Set(repositories.map((name) => name.toLowerCase()));
    const id = this.#accounts.get(login) ?? ++this.#lastAccount;
    this.#accounts.set(login, id);
    this.#users.set(token, { login, id, level, repositories: limited });
  }

  /** The account keeps its number and its tokens; the old login is free. */
  renameUser(login: string, newLogin: string): void {
    const id = this.#accounts.get(login);
    if (id === undefined) throw new RangeError(`the code host has no user ${login}`);
    this.#accounts.delete(login);
    this.#accounts.set(newLogin, id);
    for (const [token, user] of this.#users) {
      if (user.login === login) this.#users.set(token, { ...user, login: newLogin });
    }
  }

  /** Limits of a login's other tokens. Undefined: no limits. */
  repositoriesOf(login: string): readonly string[] | undefined {
    for (const user of this.#users.values()) {
      if (user.login === login && user.repositories !== undefined) return [...user.repositories];
    }
    return undefined;
  }

  find(owner: string, name: string): Repository | undefined {
    return this.#repositories.get(key(owner, name));
  }

  revoke(token: string): void {
    this.#users.delete(token);
  }

  setVisibility(owner: string, name: string, visibility: Visibility): void {
    this.#repositories.set(key(owner, name), { ...this.get(owner, name), visibility });
  }

  rename(owner: string, name: string, newOwner: string, newName: string): void {
    const repository = this.get(owner, name);
    this.#repositories.delete(key(owner, name));
    this.#repositories.set(key(newOwner, newName), { ...repository, owner: newOwner, name: newName });
    this.#moved.set(key(owner, name), key(newOwner, newName));
    this.#moved.delete(key(newOwner, newName));
  }

  /** Forgets a repository: as one that never was. */
  remove(owner: string, name: string): Repository {
    const repository = this.get(owner, name);
    this.#repositories.delete(key(owner, name));
    return repository;
  }

  get(owner: string, name: string): Repository {
    const repository = this.#repositories.get(key(owner, name));
    if (repository === undefined) throw new RangeError(`the code host has no repository ${owner}/${name}`);
    return repository;
  }

  all(): readonly Repository[] {
    return [...this.#repositories.values()];
  }

  /** Accepts `Basic` with the token in either field, `Bearer` and `token`. */
  identify(authorization: string | undefined): Caller {
    if (authorization === undefined) return { kind: "anonymous" };
    for (const token of tokensOf(authorization)) {
      const user = this.#users.get(token);
      if (user !== undefined) return { kind: "user", user };
    }
    return { kind: "unknown" };
  }

  /** Whether a caller may read (or write) a repository; a name that does not exist is hidden like a private one. */
  judge(caller: Caller, owner: string, name: string, action: "read" | "write"): Judgement {
    if (caller.kind === "unknown") return { allowed: false, status: 401 };
    const repository = this.#repositories.get(key(owner, name));
    if (repository === undefined) {
      const moved = this.#moved.get(key(owner, name));
      if (moved !== undefined) return this.#redirect(caller, moved, action);
      return { allowed: false, status: caller.kind === "anonymous" ? 401 : 404 };
    }
    if (repository.visibility === "gone") return { allowed: false, status: 404 };
    if (repository.visibility === "forbidden") return { allowed: false, status: 403 };
    if (caller.kind === "anonymous") {
      const open = repository.visibility === "public" && action === "read";
      return open ? { allowed: true, repository } : { allowed: false, status: 401 };
    }
    const { repositories: limited, level } = caller.user;
    if (limited === undefined || limited.has(key(owner, name))) {
      if (
        level === "write" ||
        (action === "read" && (level === "read" || repository.visibility === "public"))
      ) {
        return { allowed: true, repository };
      }
      return { allowed: false, status: level === "none" && repository.visibility === "private" ? 404 : 403 };
    }
    if (repository.visibility === "private") return { allowed: false, status: 404 };
    return action === "read" ? { allowed: true, repository } : { allowed: false, status: 403 };
  }

  #redirect(caller: Caller, target: string, action: "read" | "write"): Judgement {
    const [owner = "", name = ""] = target.split("/");
    const judgement = this.judge(caller, owner, name, action);
    if (!judgement.allowed) return judgement;
    const { repository } = judgement;
    return { allowed: false, status: 301, owner: repository.owner, name: repository.name };
  }
}

function key(owner: string, name: string): string {
  return `${owner}/${name}`.toLowerCase();
}

function tokensOf(authorization: string): string[] {
  const [scheme = "", value = ""] = authorization.split(/ +(.*)/s);
  if (scheme.toLowerCase() !== "basic") return [value];
  const decoded = Buffer.from(value, "base64").toString("utf8");
  const colon = decoded.indexOf(":");
  return colon < 0 ? [decoded] : [decoded.slice(0, colon), decoded.slice(colon + 1)];
}

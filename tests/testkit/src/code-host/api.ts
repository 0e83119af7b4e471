import type { Access, Caller } from "./access.ts";

export interface ApiAnswer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body: unknown;
}

/** Path of the REST API, as on GitHub Enterprise Server. */
export const API_PREFIX = "/api/v3";

/** Answers the GitHub-shaped REST calls that are in use: the own user, and one repository. */
export function answerApi(
  access: Access,
  caller: Caller,
  method: string,
  path: string,
  base: string,
): ApiAnswer {
  if (caller.kind === "unknown") return { status: 401, body: { message: "Bad credentials" } };
  const route = path.slice(API_PREFIX.length);
  if (method !== "GET" && method !== "HEAD") return NOT_FOUND;
  if (route === "/user") {
    if (caller.kind === "anonymous") return { status: 401, body: { message: "Requires authentication" } };
    return { status: 200, body: { login: caller.user.login, id: caller.user.id, type: "User" } };
  }
  const found = /^\/repos\/([^/]+)\/([^/]+)$/.exec(route);
  if (found === null) return NOT_FOUND;
  return repository(access, caller, found[1] ?? "", found[2] ?? "", base);
}

const NOT_FOUND: ApiAnswer = { status: 404, body: { message: "Not Found" } };

function repository(access: Access, caller: Caller, owner: string, name: string, base: string): ApiAnswer {
  const judgement = access.judge(caller, owner, name, "read");
  if (!judgement.allowed) {
    if (judgement.status === 301) {
      const url = `${base}${API_PREFIX}/repos/${judgement.owner}/${judgement.name}`;
      return { status: 301, headers: { location: url }, body: { message: "Moved Permanently", url } };
    }
    // The API hides what the caller may not see, also from an anonymous one.
    return judgement.status === 403 ? { status: 403, body: { message: "Forbidden" } } : NOT_FOUND;
  }
  const { id, owner: login, name: own, visibility } = judgement.repository;
  const writable = access.judge(caller, owner, name, "write").allowed;
  return {
    status: 200,
    body: {
      id,
      name: own,
      full_name: `${login}/${own}`,
      private: visibility === "private",
      owner: { login },
      html_url: `${base}/${login}/${own}`,
      clone_url: `${base}/${login}/${own}.git`,
      default_branch: "main",
      permissions: { admin: false, push: writable, pull: true },
    },
  };
}

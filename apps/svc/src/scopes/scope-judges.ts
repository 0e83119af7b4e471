import type { CodeHost } from "../code-host/code-host.ts";
import type { GraphqlJudge } from "./graphql-judge.ts";
import type { RestJudge } from "./rest-judge.ts";

/** Gitea's parameters that make a request another user's. */
const OTHER_USER = ["sudo", "token", "access_token"];

/** The judges of the code host's interfaces, loaded with the first limited request: their tables take time and memory. */
export class ScopeJudges {
  readonly #kind: CodeHost["kind"];
  #rest: Promise<RestJudge> | undefined;
  #graphql: Promise<GraphqlJudge> | undefined;

  constructor(kind: CodeHost["kind"]) {
    this.#kind = kind;
  }

  async rest(): Promise<RestJudge> {
    return (this.#rest ??= this.#kind === "github" ? githubRest() : giteaRest());
  }

  /** Undefined: the code host has no GraphQL. */
  async graphql(): Promise<GraphqlJudge | undefined> {
    if (this.#kind !== "github") return undefined;
    return (this.#graphql ??= import("./graphql-judge.ts").then((loaded) => new loaded.GraphqlJudge()));
  }
}

async function githubRest(): Promise<RestJudge> {
  const { RestJudge: Judge } = await import("./rest-judge.ts");
  return new Judge();
}

async function giteaRest(): Promise<RestJudge> {
  const [{ RestJudge: Judge }, { RestRoutes }, { GITEA_TABLE }] = await Promise.all([
    import("./rest-judge.ts"),
    import("./rest-routes.ts"),
    import("./gitea-table.ts"),
  ]);
  return new Judge(new RestRoutes(GITEA_TABLE), OTHER_USER);
}

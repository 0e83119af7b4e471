import type { CodeHost } from "../code-host/code-host.ts";
import type { GraphqlJudge } from "./graphql-judge.ts";
import type { RestJudge } from "./rest-judge.ts";

/** The judges of the code host's interfaces, loaded with the first limited request: their tables take time and memory. */
export class ScopeJudges {
  readonly #kind: CodeHost["kind"];
  #rest: Promise<RestJudge> | undefined;
  #graphql: Promise<GraphqlJudge> | undefined;

  constructor(kind: CodeHost["kind"]) {
    this.#kind = kind;
  }

  /** Undefined: there is no table of this code host's API, and limited tokens do not open it. */
  async rest(): Promise<RestJudge | undefined> {
    if (this.#kind !== "github") return undefined;
    return (this.#rest ??= import("./rest-judge.ts").then((loaded) => new loaded.RestJudge()));
  }

  async graphql(): Promise<GraphqlJudge | undefined> {
    if (this.#kind !== "github") return undefined;
    return (this.#graphql ??= import("./graphql-judge.ts").then((loaded) => new loaded.GraphqlJudge()));
  }
}

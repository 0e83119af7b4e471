import type { Demand } from "./required-permissions.ts";
import type { Brought } from "./workflow-writes.ts";

/**
 * What a request of the API needs of a token.
 * - `demand`: these rights, for these repositories. `brings`: and `workflows:write`, where any of it changes workflows.
 *   `parameters`: those of REST's path, decoded.
 * - `refused`: no limited token may do it; `message` says why and names the route or field. `conceals`: for an id, of which
 *   it must not be told, also not by the time that it took, whether it is there.
 *
 * `rule` names what was looked up: `GET /repos/{owner}/{repo}/issues`, `mutation createIssue`.
 */
export type Judgement =
  | {
      readonly kind: "demand";
      readonly rule: string;
      readonly demand: Demand;
      readonly brings?: readonly Brought[];
      readonly parameters?: Readonly<Record<string, string>>;
    }
  | Refused;

export interface Refused {
  readonly kind: "refused";
  readonly rule: string;
  readonly message: string;
  readonly conceals?: true;
}

/** @param reason ends the sentence for the caller: "it reaches other repositories" */
export function refusedToLimited(rule: string, reason: string): Refused {
  return { kind: "refused", rule, message: `${rule} is not for a token with limits: ${reason}` };
}

/** What stands behind an id of the code host. */
export interface NodeFacts {
  /** GraphQL's type name. */
  readonly type: string;
  /** `owner/name`; undefined: it belongs to none. */
  readonly repository: string | undefined;
  /** Of a pull request. */
  readonly number?: string;
  /** A comment, of a pull request rather than an issue. */
  readonly onPullRequest?: boolean;
}

/**
 * Questions about ids, which the code host answers under the caller's own credential: what the caller cannot see is not
 * there.
 */
export interface IdResolver {
  /** `owner/name` of the repository with the numeric id. */
  repositoryById(id: string): Promise<string | undefined>;
  /** Whether the issue number is a pull request's. */
  isPullRequest(repository: string, number: string): Promise<boolean>;
  /** What global node ids stand for; those that are unknown are left out. */
  nodes(ids: readonly string[]): Promise<ReadonlyMap<string, NodeFacts>>;
}

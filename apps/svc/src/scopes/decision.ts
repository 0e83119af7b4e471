import type { RequiredPermissions } from "./required-permissions.ts";
import type { AddedContent } from "./workflow-writes.ts";

/**
 * The decision on a request of the API.
 * - `requires`: the token must have the `required` permissions, and `workflows:write` where anything in `adds` changes workflows.
 *   `parameters`: the decoded parameters of REST's path.
 * - `refused`: no limited token may make the request. `message` gives the reason and names the route or field. `conceals`: the
 *   caller must not learn, not even from the time that the response took, whether the id exists.
 *
 * `rule` names the entry of the table: `GET /repos/{owner}/{repo}/issues`, `mutation createIssue`.
 */
export type Decision =
  | {
      readonly kind: "requires";
      readonly rule: string;
      readonly required: RequiredPermissions;
      readonly adds?: readonly AddedContent[];
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

/** The value that an id of the code host names. */
export interface NodeFacts {
  /** GraphQL's type name. */
  readonly type: string;
  /** `owner/name`; undefined: it belongs to no repository. */
  readonly repository: string | undefined;
  /** Number of a pull request. */
  readonly number?: string;
  /** Whether a comment belongs to a pull request, not to an issue. */
  readonly onPullRequest?: boolean;
}

/** Resolves ids at the code host with the caller's own credential. Values that the caller cannot see do not exist. */
export interface IdResolver {
  /** `owner/name` of the repository with the numeric id. */
  repositoryById(id: string): Promise<string | undefined>;
  /** Whether the issue number is a pull request's. */
  isPullRequest(repository: string, number: string): Promise<boolean>;
  /** The values that global node ids name. Unknown ids are left out. */
  nodes(ids: readonly string[]): Promise<ReadonlyMap<string, NodeFacts>>;
}

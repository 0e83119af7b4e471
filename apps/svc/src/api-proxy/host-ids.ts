import type { TokenLimits } from "../scopes/required-permissions.ts";
import type { Clock } from "@devplat/base";
import { jsonMember, numberMember, stringMember } from "@devplat/base/json-member";
import { BoundedMap } from "@devplat/base/bounded-map";
import type { CodeHost } from "../code-host/code-host.ts";
import type { IdResolver, NodeFacts } from "../scopes/decision.ts";
import { isListed } from "../scopes/token-limits.ts";
import { EVERYTHING } from "../scopes/scopes.ts";
import type { ApiUpstream } from "./api-upstream.ts";
import type { WorkflowComparison } from "../scopes/workflow-writes.ts";
import { WorkflowFiles } from "./workflow-files.ts";

/** Milliseconds that an id is remembered. A repository can be renamed and an issue transferred. */
const KEPT_MS = 60_000;
/** Responses that are remembered, of each kind. */
const MAX_KEPT = 10_000;

/** Concurrent requests about a token's repositories. */
const MAX_ASKED_AT_ONCE = 10;
/** The time of a refusal is rounded up to a multiple of these milliseconds, to hide the response time of the code host. */
const EVEN_MS = 250;

/** Path of fields from each kind of value to its repository. */
const REPOSITORY_OF: readonly (readonly [type: string, path: readonly string[]])[] = [
  ["RepositoryNode", ["repository"]],
  ["GitObject", ["repository"]],
  ["Ref", ["repository"]],
  ["Label", ["repository"]],
  ["Milestone", ["repository"]],
  ["Release", ["repository"]],
  ["ReleaseAsset", ["release", "repository"]],
  ["CheckSuite", ["repository"]],
  ["CheckRun", ["repository"]],
  ["WorkflowRun", ["checkSuite", "repository"]],
  ["Deployment", ["repository"]],
  ["BranchProtectionRule", ["repository"]],
  ["PullRequestReviewThread", ["repository"]],
  ["DiscussionComment", ["discussion", "repository"]],
];

/** The query for ids. Each field has an alias, because some types allow null and others do not. */
export const NODES_QUERY = `query($ids: [ID!]!) { nodes(ids: $ids) { __typename ... on Repository { nameWithOwner } \
... on IssueComment { pullRequest { id } } ... on PullRequest { number } ${REPOSITORY_OF.map(
  ([type, path], index) =>
    `... on ${type} { at${index}: ${path.join(" { ")} { nameWithOwner ${"} ".repeat(path.length)}}`,
).join(" ")} } }`;

/**
 * Asks the code host which objects ids name, and remembers that for a minute, for all callers. An object outside of the
 * caller's token is treated like one that does not exist, also in time: it is neither looked up by itself, nor answered
 * from memory.
 */
export class HostIds {
  readonly #upstream: Pick<ApiUpstream, "ask">;
  readonly #host: Pick<CodeHost, "apiUrl" | "graphqlUrl">;
  readonly #userAgent: string;
  readonly #clock: Clock;
  /** Names by id, for credentials that are not held to single repositories. */
  readonly #repositories: BoundedMap<string, string>;
  /** Ids by name in lower case. */
  readonly #numbers: BoundedMap<string, string>;
  readonly #pullRequests: BoundedMap<string, boolean>;
  readonly #nodeFacts: BoundedMap<string, NodeFacts>;

  constructor(parts: {
    readonly upstream: Pick<ApiUpstream, "ask">;
    readonly host: Pick<CodeHost, "apiUrl" | "graphqlUrl">;
    readonly userAgent: string;
    readonly clock: Clock;
  }) {
    this.#upstream = parts.upstream;
    this.#host = parts.host;
    this.#userAgent = parts.userAgent;
    this.#clock = parts.clock;
    const bounds = { max: MAX_KEPT, ttlMs: KEPT_MS, now: () => parts.clock.monotonic() };
    this.#numbers = new BoundedMap(bounds);
    this.#repositories = new BoundedMap(bounds);
    this.#pullRequests = new BoundedMap(bounds);
    this.#nodeFacts = new BoundedMap(bounds);
  }

  /**
   * The responses for one caller.
   *
   * @param limits of the caller's token
   * @param authorization called when a request to the code host is needed
   * @throws ApiError from the requests
   */
  as(
    limits: TokenLimits,
    authorization: () => Promise<string | undefined>,
    signal?: AbortSignal,
  ): IdResolver & { readonly workflows: WorkflowComparison } {
    const rest = async (path: string): Promise<unknown> =>
      this.#upstream.ask({
        method: "GET",
        url: new URL(this.#host.apiUrl + path),
        headers: this.#headers(await authorization()),
        ...(signal === undefined ? {} : { signal }),
      });
    return {
      repositoryById: async (id) =>
        limits.repositories.some((each) => each.endsWith(EVERYTHING))
          ? remembered(this.#repositories, id, async () =>
              stringMember(await rest(`/repositories/${id}`), "full_name"),
            )
          : this.#amongListed(id, limits.repositories, rest),
      isPullRequest: async (repository, number) => {
        if (!/^\d{1,12}$/.test(number)) return false;
        const found = await remembered(
          this.#pullRequests,
          `${repository.toLowerCase()} ${number}`,
          async () => {
            const issue = await rest(`/repos/${repository}/issues/${number}`);
            return isObject(issue) ? "pull_request" in issue : undefined;
          },
        );
        return found === true;
      },
      nodes: async (ids) => this.#nodes(ids, limits, authorization, signal),
      workflows: new WorkflowFiles(rest),
    };
  }

  /**
   * Runs a decision so that the time of a refusal for an id does not tell whether the id exists.
   *
   * @param conceals whether the outcome is such a refusal
   */
  async evenly<Outcome>(
    decide: () => Promise<Outcome>,
    conceals: (outcome: Outcome) => boolean,
  ): Promise<Outcome> {
    const begun = this.#clock.monotonic();
    const outcome = await decide();
    if (conceals(outcome)) {
      await this.#clock.sleep(EVEN_MS - ((this.#clock.monotonic() - begun) % EVEN_MS));
    }
    return outcome;
  }

  /** Looks up the numbers of the token's own repositories, not the repository of the number. */
  async #amongListed(
    id: string,
    names: readonly string[],
    rest: (path: string) => Promise<unknown>,
  ): Promise<string | undefined> {
    for (let from = 0; from < names.length; from += MAX_ASKED_AT_ONCE) {
      const asked = names.slice(from, from + MAX_ASKED_AT_ONCE);
      const numbers = await Promise.all(
        asked.map(async (name) =>
          remembered(this.#numbers, name.toLowerCase(), async () =>
            numberText(await rest(`/repos/${name}`), "id"),
          ),
        ),
      );
      const index = numbers.indexOf(id);
      if (index !== -1) return asked[index];
    }
    return undefined;
  }

  async #nodes(
    ids: readonly string[],
    limits: TokenLimits,
    authorization: () => Promise<string | undefined>,
    signal: AbortSignal | undefined,
  ): Promise<ReadonlyMap<string, NodeFacts>> {
    const found = new Map<string, NodeFacts>();
    const missing: string[] = [];
    for (const id of ids) {
      const kept = this.#nodeFacts.get(id);
      if (kept === undefined || !isWithin(kept, limits)) missing.push(id);
      else found.set(id, kept);
    }
    if (missing.length === 0 || this.#host.graphqlUrl === undefined) return found;
    const response = await this.#upstream.ask({
      method: "POST",
      url: new URL(this.#host.graphqlUrl),
      headers: { ...this.#headers(await authorization()), "content-type": "application/json" },
      body: JSON.stringify({ query: NODES_QUERY, variables: { ids: missing } }),
      ...(signal === undefined ? {} : { signal }),
    });
    const nodes = jsonMember(response, "data", "nodes");
    for (const [index, id] of missing.entries()) {
      // Answered in the order of the ids; null for what is not there.
      const facts = nodeFacts(Array.isArray(nodes) ? (nodes[index] as unknown) : undefined);
      if (facts === undefined) continue;
      found.set(id, facts);
      this.#nodeFacts.set(id, facts);
    }
    return found;
  }

  #headers(authorization: string | undefined): Record<string, string> {
    return {
      accept: "application/json",
      "user-agent": this.#userAgent,
      ...(authorization === undefined ? {} : { authorization }),
    };
  }
}

/** The value that is remembered, else the result of `ask`. Undefined is not remembered: another caller may see more. */
async function remembered<Value extends {}>(
  map: BoundedMap<string, Value>,
  key: string,
  ask: () => Promise<Value | undefined>,
): Promise<Value | undefined> {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = await ask();
  if (value !== undefined) map.set(key, value);
  return value;
}

function isWithin({ repository }: NodeFacts, limits: TokenLimits): boolean {
  return repository !== undefined && isListed(limits, repository);
}

function nodeFacts(node: unknown): NodeFacts | undefined {
  const type = stringMember(node, "__typename");
  if (type === undefined) return undefined;
  const repository =
    stringMember(node, "nameWithOwner") ??
    REPOSITORY_OF.map(([, path], index) =>
      stringMember(node, `at${index}`, ...path.slice(1), "nameWithOwner"),
    ).find((name) => name !== undefined);
  const number = numberText(node, "number");
  const onPullRequest = type === "IssueComment" && isObject(jsonMember(node, "pullRequest"));
  return {
    type,
    repository,
    ...(number === undefined ? {} : { number }),
    ...(onPullRequest ? { onPullRequest } : {}),
  };
}

/** A number as the paths of the API have it. */
function numberText(value: unknown, name: string): string | undefined {
  const found = numberMember(value, name);
  return found === undefined ? undefined : String(found);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/**
 * Permissions that limited tokens need for every operation and field of the published APIs. As a program, it prints one line for each:
 * `sh tools/run.sh tools/scopes/decisions.ts`. Compare the output before and after a change of rules or authorizers.
 */
import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { parseApiPath } from "../../apps/svc/src/scopes/rest/api-path.ts";
import { readGraphqlRequest } from "../../apps/svc/src/scopes/graphql/graphql-request.ts";
import type { IdResolver } from "../../apps/svc/src/scopes/decision.ts";
import { ScopeAuthorizers } from "../../apps/svc/src/scopes/scope-authorizers.ts";
import { parseScopes } from "../../apps/svc/src/scopes/scopes.ts";
import { giteaOperations } from "./gitea-operations.ts";
import { githubOperations } from "./github-operations.ts";
import { GraphqlSchema } from "./graphql-schema.ts";
import type { RestOperation } from "./rest-table.ts";
import { publishedGraphqlSchema } from "./tables.ts";

/** Holds the digests, so that a change of any decision shows in a diff. */
export const DECISIONS_FILE = resolve(import.meta.dirname, "decisions.json");

/** Lines of one API: an operation or field, a space, and the decision as JSON. */
type ApiDecisions = AsyncGenerator<string>;

const APIS: Readonly<Record<string, () => ApiDecisions>> = {
  "GitHub REST": () => restDecisions("github", githubOperations()),
  "Gitea REST": () => restDecisions("gitea", giteaOperations()),
  "GitHub GraphQL": graphqlDecisions,
};

/** The number of lines of each API and their SHA-256. */
export async function decisionDigests(): Promise<Record<string, { lines: number; sha256: string }>> {
  const digests: Record<string, { lines: number; sha256: string }> = {};
  for (const [api, decisions] of Object.entries(APIS)) {
    const hash = createHash("sha256");
    let lines = 0;
    for await (const line of decisions()) {
      hash.update(`${line}\n`);
      lines++;
    }
    digests[api] = { lines, sha256: hash.digest("hex") };
  }
  return digests;
}

/** Opens issues by `pull_requests` alone, where the code host says that a number is a pull request's. */
const TOKEN = { repositories: ["acme/widgets"], scopes: parseScopes("pull_requests:write").scopes };

/** Every id is its type's name, and belongs to the token's repository. */
const RESOLVER: IdResolver = {
  repositoryById: async () => "acme/widgets",
  isPullRequest: async () => true,
  nodes: async (ids) => new Map(ids.map((id) => [id, { type: id, repository: "acme/widgets", number: "7" }])),
};

/** Values of path parameters, other than their names. */
const PARAMETERS: Readonly<Record<string, string>> = {
  owner: "acme",
  repo: "widgets",
  path: ".github/workflows/ci.yml",
};
/** The first is decided by what it finds; the second searches every repository. */
const QUERIES = ["q=repo:acme/widgets", "q=words"];

async function* restDecisions(kind: "github" | "gitea", operations: readonly RestOperation[]): ApiDecisions {
  const authorizer = await new ScopeAuthorizers(kind).rest();
  for (const { method, template } of operations) {
    const path = parseApiPath(
      template.replaceAll(/\{([\w-]+)\}/g, (_, name: string) => PARAMETERS[name] ?? name),
    );
    if (typeof path === "string") throw new TypeError(`${template}: ${path}`);
    for (const query of QUERIES) {
      const request = { method, path, query: new URLSearchParams(query) };
      yield `${method} ${template} ${JSON.stringify(await authorizer.decide(request, TOKEN, RESOLVER))}`;
    }
  }
}

/** Arguments with which a field of the schema's root reaches the token's repository. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  repository: '(owner: "acme", name: "widgets")',
  node: '(id: "Issue")',
  nodes: '(ids: ["Issue"])',
  search: '(query: "repo:acme/widgets", type: ISSUE)',
  user: '(login: "acme")',
  organization: '(login: "acme")',
  repositoryOwner: '(login: "acme")',
};
/** Types of the values that a mutation is tried with. */
const SUBJECTS = ["Issue", "PullRequest", "Discussion", "Repository", "User"];
/** Input objects within input objects. */
const INPUT_DEPTH = 3;

async function* graphqlDecisions(): ApiDecisions {
  const authorizer = await new ScopeAuthorizers("github").graphql();
  const schema = new GraphqlSchema(publishedGraphqlSchema());
  const decided = async (label: string, query: string, input: unknown = {}): Promise<string> => {
    const request = readGraphqlRequest({ query, variables: { input } });
    if (typeof request === "string") throw new TypeError(`${label}: ${request}`);
    return `${label} ${JSON.stringify(await authorizer?.decide(request, TOKEN, RESOLVER))}`;
  };
  for (const type of schema.typesWithFields()) {
    for (const { name, target, isLeaf, input } of schema.fields(type)) {
      const selections = isLeaf
        ? [""]
        : [
            "{ __typename }",
            ...schema
              .fields(target)
              .map((inner) => `{ ${inner.name}${inner.isLeaf ? "" : " { __typename }"} }`),
          ];
      for (const selection of selections) {
        const label = `${type}.${name} ${selection}`;
        if (type === "Query") yield decided(label, `{ ${name}${ARGUMENTS[name] ?? ""} ${selection} }`);
        else if (type === "Mutation") {
          const query = `mutation($input: X!) { ${name}(input: $input) ${selection} }`;
          yield decided(label, query, inputValue(schema, input ?? "", "Issue"));
        } else yield decided(label, `{ node(id: "${type}") { ... on ${type} { ${name} ${selection} } } }`);
      }
      if (type !== "Mutation" || input === undefined) continue;
      const query = `mutation($input: X!) { ${name}(input: $input) { __typename } }`;
      for (const id of SUBJECTS) yield decided(`${name} of ${id}`, query, inputValue(schema, input, id));
      // Each field alone: what names nothing is refused.
      for (const [field, value] of Object.entries(inputValue(schema, input, "Issue"))) {
        yield decided(`${name} with ${field}`, query, { [field]: value });
      }
    }
  }
}

/** A value for every field of an input type; each id is the one given. */
function inputValue(schema: GraphqlSchema, type: string, id: string, depth = 0): Record<string, unknown> {
  const entries = schema.inputFields(type).map((field): [string, unknown] => {
    if (field.isInputObject)
      return [field.name, depth < INPUT_DEPTH ? inputValue(schema, field.type, id, depth + 1) : null];
    if (field.type === "ID") return [field.name, id];
    return [field.name, field.name === "repositoryNameWithOwner" ? "acme/widgets" : "words"];
  });
  return Object.fromEntries(entries);
}

if (import.meta.main) {
  for (const decisions of Object.values(APIS)) {
    for await (const line of decisions()) process.stdout.write(`${line}\n`);
  }
}

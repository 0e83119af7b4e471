import { readFileSync } from "node:fs";
import {
  buildSchema,
  defaultFieldResolver,
  getNamedType,
  getNullableType,
  execute,
  isAbstractType,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
  parse,
  specifiedRules,
  validate,
  type GraphQLFieldResolver,
  type GraphQLOutputType,
  type GraphQLSchema,
} from "graphql";
import type { Access, Caller, Repository } from "./access.ts";

/** GitHub lets fields of types that exclude each other differ in their enums; `gh` makes use of it. */
const RULES = specifiedRules.filter(({ name }) => name !== "OverlappingFieldsCanBeMergedRule");

let loaded: GraphQLSchema | undefined;

/** GitHub's published schema; takes a tenth of a second, once. */
function schema(): GraphQLSchema {
  const file = new URL("schema.graphql", import.meta.resolve("@octokit/graphql-schema"));
  return (loaded ??= buildSchema(readFileSync(file, "utf8"), { assumeValid: true }));
}

interface Value extends Record<string, unknown> {
  readonly __typename?: string;
}

/**
 * Answers GraphQL by GitHub's published schema: queries are validated against it; repositories, issues and ids are the
 * code host's own, and what a query asks beyond that is filled in by type.
 */
export async function answerGraphql(access: Access, caller: Caller, body: string): Promise<unknown> {
  const { query, variables, operationName } = JSON.parse(body) as {
    query: string;
    variables?: Record<string, unknown>;
    operationName?: string;
  };
  const document = parse(query);
  const errors = validate(schema(), document, RULES);
  if (errors.length > 0) return { errors: errors.map(({ message }) => ({ message })) };
  return execute({
    schema: schema(),
    document,
    rootValue: rootOf(access, caller),
    fieldResolver: filled,
    typeResolver: ({ __typename: name }: Value, _, info) =>
      name ?? firstOf(info.schema, info.returnType as never),
    ...(variables === undefined ? {} : { variableValues: variables }),
    ...(operationName === undefined ? {} : { operationName }),
  });
}

function rootOf(access: Access, caller: Caller): Value {
  const login = caller.kind === "user" ? caller.user.login : "ghost";
  const node = (id: string): Value | null => {
    const [kind = "", number = "0"] = id.split("_");
    if (kind === "U") return { __typename: "User", id, login: "someone" };
    const repository = access.all().find((each) => String(each.id) === number);
    if (repository === undefined || !access.judge(caller, repository.owner, repository.name, "read").allowed)
      return null;
    const value = repositoryValue(repository);
    if (kind === "R") return value;
    const type = { I: "Issue", PR: "PullRequest", IC: "IssueComment" }[kind];
    return type === undefined
      ? null
      : { ...issueValue(repository, 1, id), __typename: type, repository: value };
  };
  return {
    viewer: { __typename: "User", login, id: "U_1" },
    repository: ({ owner, name }: { owner: string; name: string }) => {
      const judged = access.judge(caller, owner, name, "read");
      if (!judged.allowed)
        throw new Error(`Could not resolve to a Repository with the name '${owner}/${name}'.`);
      return repositoryValue(judged.repository);
    },
    node: ({ id }: { id: string }) => node(id),
    nodes: ({ ids }: { ids: string[] }) => ids.map(node),
    createIssue: ({ input }: { input: { title: string; repositoryId: string } }) => {
      const repository = node(input.repositoryId);
      return {
        issue: { number: 2, title: input.title, id: "I_2", url: `${String(repository?.["url"])}/issues/2` },
      };
    },
  };
}

function repositoryValue(repository: Repository): Value {
  const { id, owner, name, visibility } = repository;
  const issues = [issueValue(repository, 1, `I_${id}`)];
  const pulls = [
    {
      ...issueValue(repository, 1, `PR_${id}`),
      __typename: "PullRequest",
      headRefName: "topic",
      state: "OPEN",
    },
  ];
  return {
    __typename: "Repository",
    id: `R_${id}`,
    databaseId: id,
    name,
    nameWithOwner: `${owner}/${name}`,
    owner: { __typename: "User", login: owner, id: "U_1" },
    url: `https://github.com/${owner}/${name}`,
    isPrivate: visibility === "private",
    hasIssuesEnabled: true,
    viewerPermission: "WRITE",
    defaultBranchRef: { name: "main", target: { __typename: "Commit" } },
    parent: null,
    issues: { nodes: issues, totalCount: 1 },
    pullRequests: { nodes: pulls, totalCount: 1 },
    issue: issues[0],
    issueOrPullRequest: issues[0],
    pullRequest: pulls[0],
  };
}

function issueValue({ owner, name }: Repository, number: number, id: string): Value {
  return {
    __typename: "Issue",
    id,
    number,
    title: `The first of ${owner}/${name}`,
    body: "text",
    state: "OPEN",
    url: `https://github.com/${owner}/${name}/issues/${number}`,
    author: { __typename: "User", login: "someone" },
    createdAt: "2026-01-01T00:00:00Z",
    updatedAt: "2026-01-01T00:00:00Z",
  };
}

/** The value itself, else something of the field's type: empty lists and connections, zeros, first words of enums. */
const filled: GraphQLFieldResolver<unknown, unknown> = (source, args, context, info) => {
  const own: unknown = defaultFieldResolver(source, args, context, info);
  return own === undefined ? standIn(info.schema, info.returnType) : own;
};

function standIn(of: GraphQLSchema, type: GraphQLOutputType): unknown {
  const nullable = getNullableType(type);
  if (isListType(nullable)) return [];
  const named = getNamedType(type);
  if (isObjectType(named)) return isNonNullType(type) || named.name.endsWith("Connection") ? {} : null;
  if (isAbstractType(named)) return isNonNullType(type) ? { __typename: firstOf(of, named) } : null;
  if (isEnumType(named)) return named.getValues()[0]?.value as unknown;
  if (!isScalarType(named)) return null;
  if (!isNonNullType(type)) return null;
  const values: Record<string, unknown> = {
    Int: 0,
    Float: 0,
    Boolean: false,
    DateTime: "2026-01-01T00:00:00Z",
  };
  return named.name in values ? values[named.name] : "x";
}

function firstOf(of: GraphQLSchema, type: Parameters<GraphQLSchema["getPossibleTypes"]>[0]): string {
  return of.getPossibleTypes(type)[0]?.name ?? "";
}

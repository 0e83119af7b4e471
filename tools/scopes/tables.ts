import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { GITEA_REST_RULES } from "../../apps/svc/src/scopes/rest/gitea-rules.ts";
import { GITHUB_REST_RULES } from "../../apps/svc/src/scopes/rest/github-rules.ts";
import { giteaOperations } from "./gitea-operations.ts";
import { githubOperations } from "./github-operations.ts";
import { GraphqlSchema } from "./graphql-schema.ts";
import { graphqlTable } from "./graphql-table.ts";
import { restTable } from "./rest-table.ts";

/** Characters of an object or array that is written in one line. */
const LINE_WIDTH = 120;

/** A generated file. */
export interface TableFile {
  readonly path: string;
  /** @throws TypeError where the rules do not fit what is published */
  readonly text: () => string;
}

/** Every table of scopes, as what is published and the rules give it. */
export const TABLE_FILES: readonly TableFile[] = [
  file("rest.json", () => restTable(githubOperations(), GITHUB_REST_RULES)),
  file("gitea.json", () => restTable(giteaOperations(), GITEA_REST_RULES)),
  file("graphql.json", () => graphqlTable(new GraphqlSchema(publishedGraphqlSchema()))),
];

/** GitHub's GraphQL schema, in the schema definition language. */
export function publishedGraphqlSchema(): string {
  return readFileSync(new URL("schema.graphql", import.meta.resolve("@octokit/graphql-schema")), "utf8");
}

function file(name: string, table: () => object): TableFile {
  const path = resolve(import.meta.dirname, "../../apps/svc/src/scopes/generated", name);
  return { path, text: () => `${jsonText(table())}\n` };
}

/** JSON in which each field and element has a line of its own, unless all of them fit into one. */
function jsonText(value: unknown, indent = ""): string {
  const compact = JSON.stringify(value);
  if (compact.length <= LINE_WIDTH || typeof value !== "object" || value === null) return compact;
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    return `[\n${value.map((each) => inner + jsonText(each, inner)).join(",\n")}\n${indent}]`;
  }
  const lines = Object.entries(value).map(
    ([key, each]) => `${inner}${JSON.stringify(key)}: ${jsonText(each, inner)}`,
  );
  return `{\n${lines.join(",\n")}\n${indent}}`;
}

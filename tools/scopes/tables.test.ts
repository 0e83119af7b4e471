import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { buildSchema, parse, validate } from "graphql";
import { NODES_QUERY } from "../../apps/svc/src/api-proxy/host-ids.ts";
import { MUTATIONS } from "../../apps/svc/src/scopes/graphql-rules.ts";
import { RestRoutes } from "../../apps/svc/src/scopes/rest-routes.ts";
import { GITEA_TABLE } from "../../apps/svc/src/scopes/gitea-table.ts";
import {
  GITEA_TABLE_FILE,
  giteaOperations,
  giteaTableSource,
  unmappedGiteaOperations,
} from "./gitea-table.ts";
import { GRAPHQL_TABLE_FILE, graphqlTableSource } from "./graphql-table.ts";
import { publishedRestOperations } from "./rest-operations.ts";
import { REST_TABLE_FILE, restTableSource, unmappedRestOperations } from "./rest-table.ts";

describe("the tables of scopes", () => {
  it("no documented REST operation is unmapped", () => {
    assert.deepEqual(unmappedRestOperations(), []);
    assert.deepEqual(unmappedGiteaOperations(), []);
  });

  it("Gitea's table is what its description and the rules give, and finds every operation again", () => {
    assert.ok(readFileSync(GITEA_TABLE_FILE, "utf8") === giteaTableSource(), "run tools/scopes/generate.ts");
    const routes = new RestRoutes(GITEA_TABLE);
    for (const { method, template } of giteaOperations()) {
      const path = template.replaceAll(/\{(\w+)\}/g, "x$1");
      const found = routes.find(method, path.slice(1).split("/"));
      assert.equal(found?.template.replaceAll(/\{\w+\}/g, "{}"), template.replaceAll(/\{\w+\}/g, "{}"), path);
    }
    const file = "repos/ada/notes/raw/deep/in/a.txt".split("/");
    assert.equal(routes.find("GET", file)?.parameters["path"], "deep/in/a.txt");
  });

  it("the REST table is what the published description and the rules give", () => {
    assert.ok(readFileSync(REST_TABLE_FILE, "utf8") === restTableSource(), "run tools/scopes/generate.ts");
  });

  it("the GraphQL table is what the published schema and the rules give", () => {
    assert.ok(
      readFileSync(GRAPHQL_TABLE_FILE, "utf8") === graphqlTableSource(),
      "run tools/scopes/generate.ts",
    );
  });

  it("every documented operation is found again by its own path", () => {
    const routes = new RestRoutes();
    for (const { method, template } of publishedRestOperations()) {
      if (template.includes("}...{")) continue;
      const path = template.replaceAll(/\{(\w+)\}/g, "x$1");
      const found = routes.find(method, path === "/" ? [] : path.slice(1).split("/"));
      assert.equal(found?.template.replaceAll(/\{\w+\}/g, "{}"), template.replaceAll(/\{\w+\}/g, "{}"), path);
    }
  });

  it("the question about ids is valid in the published schema", () => {
    const file = new URL("schema.graphql", import.meta.resolve("@octokit/graphql-schema"));
    const schema = buildSchema(readFileSync(file, "utf8"), { assumeValid: true });
    assert.deepEqual(validate(schema, parse(NODES_QUERY)), []);
  });

  it("mutations that reach beyond one repository are not in the table", () => {
    for (const name of [
      "transferIssue",
      "cloneTemplateRepository",
      "createRepository",
      "addStar",
      "addProjectV2ItemById",
    ]) {
      assert.ok(!MUTATIONS.includes(`\n${name} `), name);
    }
  });
});

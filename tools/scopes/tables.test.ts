import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { describe, it } from "node:test";
import { buildSchema, parse, validate } from "graphql";
import { NODES_QUERY } from "../../apps/svc/src/api-proxy/host-ids.ts";
import giteaTable from "../../apps/svc/src/scopes/generated/gitea.json" with { type: "json" };
import graphqlTable from "../../apps/svc/src/scopes/generated/graphql.json" with { type: "json" };
import githubTable from "../../apps/svc/src/scopes/generated/rest.json" with { type: "json" };
import { graphqlTableSchema } from "../../apps/svc/src/scopes/graphql/graphql-table.ts";
import { all, exactly, needs, OPEN } from "../../apps/svc/src/scopes/rest/rest-rule.ts";
import { RestRoutes } from "../../apps/svc/src/scopes/rest/rest-routes.ts";
import { restTableSchema } from "../../apps/svc/src/scopes/rest/rest-table.ts";
import { giteaOperations } from "./gitea-operations.ts";
import { githubOperations } from "./github-operations.ts";
import { DECISIONS_FILE, decisionDigests } from "./decisions.ts";
import { restTable, type RestOperation } from "./rest-table.ts";
import { publishedGraphqlSchema, TABLE_FILES } from "./tables.ts";

const GENERATE = "run tools/scopes/generate.ts";

describe("the tables of scopes", () => {
  for (const { path, text } of TABLE_FILES) {
    it(`${basename(path)} is what the published description and the rules give`, () => {
      assert.ok(readFileSync(path, "utf8") === text(), GENERATE);
    });
  }

  it("a documented REST operation that no rule is for stops the generation", () => {
    const operations = [
      { method: "GET", template: "/new" },
      { method: "GET", template: "/new/{id}" },
    ];
    assert.throws(
      () => restTable(operations, [exactly(all("/new", OPEN))]),
      /no rule is for GET \/new\/\{id\}/,
    );
    assert.throws(() => restTable(operations, [all("/ne", OPEN)]), /no rule is for GET \/new$/);
  });

  it("the first rule counts, and the level follows the method", () => {
    const operations = ["GET", "POST"].map((method) => ({ method, template: "/a/b" }));
    assert.deepEqual(restTable(operations, [all("/a", needs("contents")), all("/a/b", OPEN)]), {
      "/a/b": {
        GET: { kind: "repository", needs: [{ resource: "contents", level: "read" }] },
        POST: { kind: "repository", needs: [{ resource: "contents", level: "write" }] },
      },
    });
  });

  it("the files have the form that the authorizers read", () => {
    for (const table of [githubTable, giteaTable]) assert.doesNotThrow(() => restTableSchema.parse(table));
    assert.doesNotThrow(() => graphqlTableSchema.parse(graphqlTable));
  });

  it("every decision on the published APIs is as before", async () => {
    assert.deepEqual(
      await decisionDigests(),
      JSON.parse(readFileSync(DECISIONS_FILE, "utf8")),
      `${GENERATE}, and compare the output of tools/scopes/decisions.ts before and after`,
    );
  });

  it("every documented operation is found again by its own path", () => {
    const findAll = (routes: RestRoutes, operations: readonly RestOperation[]): void => {
      for (const { method, template } of operations) {
        const path = template.replaceAll(/\{(\w+)\}/g, "x$1");
        const found = routes.find(method, path === "/" ? [] : path.slice(1).split("/"));
        assert.equal(unnamed(found?.template ?? ""), unnamed(template), path);
      }
    };
    findAll(new RestRoutes(restTableSchema.parse(githubTable)), githubOperations());
    const gitea = new RestRoutes(restTableSchema.parse(giteaTable));
    findAll(gitea, giteaOperations());
    const file = "repos/ada/notes/raw/deep/in/a.txt".split("/");
    assert.equal(gitea.find("GET", file)?.parameters["path"], "deep/in/a.txt");
  });

  it("the question about ids is valid in the published schema", () => {
    const schema = buildSchema(publishedGraphqlSchema(), { assumeValid: true });
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
      assert.ok(!Object.hasOwn(graphqlTable.mutations, name), name);
    }
  });
});

/** A path template without the names of its parameters. */
function unnamed(template: string): string {
  return template.replaceAll(/\{\w+\}/g, "{}");
}

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { z } from "zod";
import { openApiDocument, type DescribedOperation } from "./openapi.ts";
import { OPENAPI_PATH, problemDocument } from "./problem.ts";

const thing = z.object({ name: z.string() }).meta({ id: "Thing" });
const TYPES = { no_thing: { status: 404, title: "There is no such thing." } };

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Record<string, unknown>>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Record<string, unknown>>> };
}

function documentOf(operation: Partial<DescribedOperation>): Document {
  const common = { method: "GET", path: "/things/{id}", summary: "A thing", responses: {}, problems: {} };
  return openApiDocument({
    info: { title: "Things", version: "1" },
    operations: [{ ...common, ...operation }],
    problemTypes: TYPES,
    problemExtensions: { message: z.string() },
    securitySchemes: {},
  }) as unknown as Document;
}
const getOf = (operation: Partial<DescribedOperation>): Record<string, unknown> =>
  documentOf(operation).paths["/things/{id}"]?.["get"] ?? {};

describe("OpenAPI document", () => {
  it("refers to named schemas, and holds each one once", () => {
    const document = documentOf({ body: { schema: thing }, responses: { 200: { schema: z.array(thing) } } });
    const get = document.paths["/things/{id}"]?.["get"];
    const reference = { $ref: "#/components/schemas/Thing" };
    assert.deepEqual(get?.["requestBody"], {
      required: true,
      content: { "application/json": { schema: reference } },
    });
    assert.deepEqual(get?.["responses"], {
      200: {
        description: "OK",
        content: { "application/json": { schema: { type: "array", items: reference } } },
      },
    });
    assert.deepEqual(Object.keys(document.components.schemas).toSorted(), ["Problem", "Thing"]);
  });

  it("describes parameters of path, query and header", () => {
    const get = getOf({
      parameters: { id: "Number of the thing" },
      query: z.object({ deep: z.boolean().optional().meta({ description: "With its parts" }) }),
      headers: z.object({ "If-Match": z.string() }),
    });
    assert.deepEqual(get["parameters"], [
      {
        name: "id",
        in: "path",
        required: true,
        description: "Number of the thing",
        schema: { type: "string" },
      },
      {
        name: "deep",
        in: "query",
        required: false,
        description: "With its parts",
        schema: { type: "boolean" },
      },
      { name: "If-Match", in: "header", required: true, schema: { type: "string" } },
    ]);
  });

  it("describes problems by their own media type, with the codes of the table", () => {
    const document = documentOf({ problems: { 404: "None has this number" } });
    assert.deepEqual(document.paths["/things/{id}"]?.["get"]?.["responses"], {
      404: {
        description: "None has this number",
        content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
      },
    });
    const { properties, required } = document.components.schemas["Problem"] ?? {};
    assert.deepEqual((properties as Record<string, { enum?: unknown }>)["code"]?.enum, ["no_thing"]);
    assert.deepEqual(required, ["type", "title", "status", "detail", "code", "message"]);
  });

  it("holds the row of each code at the place that the problem's type names", () => {
    const { type } = problemDocument(TYPES, { code: "no_thing", detail: "Thing 7 is missing." });
    const [path, pointer = ""] = type.split("#");
    assert.equal(path, OPENAPI_PATH);
    let found: unknown = documentOf({});
    for (const name of pointer.split("/").slice(1)) found = (found as Record<string, unknown>)[name];
    assert.deepEqual(found, TYPES.no_thing);
  });
});

import { STATUS_CODES } from "node:http";
import { z } from "zod";
import { sessionCookieName } from "../login/authenticator.ts";
import { operation, type Operation } from "./operation.ts";
import { PROBLEM_TYPE } from "../http/problem.ts";

const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.string().meta({ description: "For programs; it does not change" }),
    detail: z.string(),
    message: z.string().meta({ description: "The same as detail" }),
    hint: z.string().optional().meta({ description: "What to do about it" }),
    errors: z
      .array(z.object({ pointer: z.string(), message: z.string() }))
      .optional()
      .meta({ description: "One for each wrong field; pointer is a JSON Pointer into the body" }),
  })
  .meta({ id: "Problem" });

type Json = Record<string, unknown>;

/** The operation that serves the document of all operations, itself included. */
export function openApiOperation(others: readonly Operation[], version: string): Operation {
  const self: Operation = operation({
    method: "GET",
    path: "/api/openapi.json",
    id: "getOpenApi",
    tag: "Service",
    summary: "This document",
    access: "public",
    result: z.looseObject({}),
    successStatus: 200,
    handle: async () => {
      document ??= openApiDocument([...others, self], version);
      return { status: 200, body: document };
    },
  });
  let document: Json | undefined;
  return self;
}

/** OpenAPI 3.1 from the same schemas that check the requests. */
export function openApiDocument(operations: readonly Operation[], version: string): Json {
  const schemas = new NamedSchemas();
  const paths: Record<string, Json> = {};
  for (const each of operations) {
    (paths[each.path] ??= {})[each.method.toLowerCase()] = describe(each, schemas);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Caching git proxy: administration", version },
    paths,
    components: {
      schemas: schemas.named,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "A session or administration token (svcr_)" },
        cookie: {
          type: "apiKey",
          in: "cookie",
          name: sessionCookieName({ isHttps: false }),
          description: `Changes need our own Origin. Behind https the name is ${sessionCookieName({ isHttps: true })}`,
        },
      },
    },
  };
}

/** JSON Schemas of zod schemas; those with a name are gathered, and referred to. */
class NamedSchemas {
  readonly named: Json = {};

  of(schema: z.ZodType, io: "input" | "output"): Json {
    const text = JSON.stringify(z.toJSONSchema(schema, { target: "draft-2020-12", io }));
    const {
      $schema: _,
      $defs,
      ...rest
    } = JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/')) as Json;
    Object.assign(this.named, $defs);
    return rest;
  }
}

function describe(each: Operation, schemas: NamedSchemas): Json {
  const statuses: Record<number, string> = { ...each.refusals };
  if (each.access !== "public") statuses[401] = "No valid session or administration token";
  if (each.access !== "public") {
    statuses[403] =
      each.access === "admin" ? "Not an admin, or a token of another kind" : "A token of another kind";
  }
  if (each.body !== undefined || each.query !== undefined) {
    statuses[400] = "Malformed, or unknown fields (named)";
  } else if (each.path.includes("{")) statuses[400] = "The path has a character that is not allowed";
  if (each.body !== undefined) {
    Object.assign(statuses, {
      413: "Body over 1 MiB",
      415: "Not application/json",
      422: "Wrong fields, each with a pointer",
    });
  }
  if (each.conditional === true) statuses[412] = "If-Match names another version";
  const refusals = Object.entries(statuses).map(([status, description]) => [
    status,
    { description, content: { [PROBLEM_TYPE]: { schema: schemas.of(problemSchema, "output") } } },
  ]);
  return {
    operationId: each.id,
    tags: [each.tag],
    summary: each.summary,
    ...(each.description === undefined ? {} : { description: each.description }),
    security: each.access === "public" ? [] : [{ bearer: [] }, { cookie: [] }],
    "x-access": each.access,
    parameters: parameters(each, schemas),
    ...(each.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { "application/json": { schema: schemas.of(each.body, "input") } },
          },
        }),
    responses: {
      [each.successStatus]: {
        description: STATUS_CODES[each.successStatus],
        ...(each.result === undefined
          ? {}
          : { content: { "application/json": { schema: schemas.of(each.result, "output") } } }),
      },
      ...Object.fromEntries(refusals),
    },
  };
}

function parameters(each: Operation, schemas: NamedSchemas): Json[] {
  const inPath = [...each.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const query =
    each.query === undefined ? {} : (schemas.of(each.query, "input")["properties"] as Record<string, Json>);
  const inQuery = Object.entries(query).map(([name, schema]) => ({
    name,
    in: "query",
    required: false,
    schema,
  }));
  const inHeader =
    each.conditional === true
      ? [{ name: "If-Match", in: "header", required: false, schema: { type: "string" } }]
      : [];
  return [...inPath, ...inQuery, ...inHeader];
}

import { OPENAPI_PATH } from "@devplat/web-kit";
import { openApiDocument, type DescribedOperation, type Json } from "@devplat/web-kit/openapi";
import { z } from "zod";
import { sessionCookieName } from "../identity/login/authenticator.ts";
import { PROBLEM_TYPES } from "../problem-types.ts";
import { operation, successStatusOf, type Operation } from "./operation.ts";

/** The operation that serves the document of all operations, itself included. */
export function openApiOperation(others: readonly Operation[], version: string): Operation {
  const self: Operation = operation({
    method: "GET",
    path: OPENAPI_PATH,
    id: "getOpenApi",
    tag: "Service",
    summary: "This document",
    access: "public",
    result: z.looseObject({}),
    handle: async () => {
      document ??= administrationDocument([...others, self], version);
      return { body: document };
    },
  });
  let document: Json | undefined;
  return self;
}

/** OpenAPI 3.1 from the same schemas that check the requests. */
export function administrationDocument(operations: readonly Operation[], version: string): Json {
  return openApiDocument({
    info: { title: "Caching git proxy: administration", version },
    operations: operations.map(described),
    problemTypes: PROBLEM_TYPES,
    problemExtensions: {
      message: z.string().meta({ description: "The same as detail" }),
      errors: z
        .array(z.object({ pointer: z.string(), message: z.string() }))
        .optional()
        .meta({ description: "One for each wrong field; pointer is a JSON Pointer into the body" }),
    },
    securitySchemes: {
      bearer: { type: "http", scheme: "bearer", description: "A session or administration token (svcr_)" },
      cookie: {
        type: "apiKey",
        in: "cookie",
        name: sessionCookieName({ isHttps: false }),
        description: `Changes need our own Origin. Behind https the name is ${sessionCookieName({ isHttps: true })}`,
      },
    },
  });
}

const IF_MATCH = z.object({ "If-Match": z.string().optional() });

function described(each: Operation): DescribedOperation {
  const { method, path, id, tag, summary, description, access, body, query, result } = each;
  return {
    method,
    path,
    id,
    tag,
    summary,
    description,
    query,
    headers: each.conditional === true ? IF_MATCH : undefined,
    body: body && { schema: body },
    responses: { [successStatusOf(each)]: { schema: result } },
    problems: problemsOf(each),
    security: access === "public" ? [] : [{ bearer: [] }, { cookie: [] }],
    extensions: { "x-access": access },
  };
}

/** The operation's own refusals, and those of every operation of its kind. */
function problemsOf(each: Operation): Record<number, string> {
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
  return statuses;
}

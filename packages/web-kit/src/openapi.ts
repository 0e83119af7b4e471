import { STATUS_CODES } from "node:http";
import { z } from "zod";
import { PROBLEM_MEDIA_TYPE, PROBLEM_TYPES_MEMBER, type ProblemTypes } from "./problem.ts";

/** A JSON object of the document. */
export type Json = Readonly<Record<string, unknown>>;

/** A response that is not a problem. */
export interface DescribedResponse {
  /** Default: the reason phrase of the status. */
  readonly description?: string;
  /** Default: no body. */
  readonly schema?: z.ZodType | undefined;
  /** Media type of the body. Default: JSON. */
  readonly type?: string;
}

/** Description of an operation. Queries and headers are schemas of objects. */
export interface DescribedOperation {
  readonly method: string;
  /** Path in OpenAPI form: `/api/things/{id}`. */
  readonly path: string;
  /** Name for generated clients. */
  readonly id?: string;
  readonly tag?: string;
  readonly summary: string;
  readonly description?: string | undefined;
  /** Descriptions of the path parameters by name. */
  readonly parameters?: Readonly<Record<string, string>>;
  readonly query?: z.ZodType | undefined;
  readonly headers?: z.ZodType | undefined;
  /** Request body. `type` is its media type. Default: JSON. An optional one may be left out. */
  readonly body?:
    | { readonly schema: z.ZodType; readonly type?: string; readonly optional?: true }
    | undefined;
  readonly responses: Readonly<Record<number, DescribedResponse>>;
  /** Meaning of problems by status. `default` is for every other status. */
  readonly problems: Readonly<Record<string, string>>;
  readonly security?: readonly Json[];
  /** Further members, with names that begin with `x-`. */
  readonly extensions?: Json;
}

export interface DocumentParts {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly operations: readonly DescribedOperation[];
  readonly problemTypes: ProblemTypes;
  /** Members of the program's problem documents, in addition to the common ones. */
  readonly problemExtensions: z.ZodRawShape;
  readonly securitySchemes: Json;
  /** Security of operations that do not set their own. */
  readonly security?: readonly Json[];
}

/** Makes an OpenAPI 3.1 document. Named schemas (`meta({ id })`) become components. */
export function openApiDocument(parts: DocumentParts): Json {
  const { info, operations, problemTypes, problemExtensions, securitySchemes, security } = parts;
  const schemas = new NamedSchemas();
  const problem = schemas.of(problemSchema(problemTypes, problemExtensions), "output");
  const paths: Record<string, Record<string, Json>> = {};
  for (const each of operations) {
    (paths[each.path] ??= {})[each.method.toLowerCase()] = describe(each, schemas, problem);
  }
  return {
    openapi: "3.1.0",
    info,
    paths,
    components: { schemas: schemas.named, securitySchemes, [PROBLEM_TYPES_MEMBER]: problemTypes },
    ...(security !== undefined && { security }),
  };
}

function problemSchema(types: ProblemTypes, extensions: z.ZodRawShape): z.ZodType {
  return z
    .object({
      type: z.string().meta({ format: "uri-reference" }),
      title: z.string(),
      status: z.int(),
      detail: z.string(),
      code: z.enum(Object.keys(types)).meta({ description: "For programs; it does not change" }),
      hint: z.string().optional().meta({ description: "What to do about it" }),
      ...extensions,
    })
    .meta({ id: "Problem" });
}

/** JSON Schemas of zod schemas. Named ones are collected as components and referred to. */
class NamedSchemas {
  readonly named: Record<string, unknown> = {};

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

const JSON_TYPE = "application/json";

function describe(each: DescribedOperation, schemas: NamedSchemas, problem: Json): Json {
  const { id, tag, summary, description, body, security, extensions } = each;
  const responses = Object.entries(each.responses).map(([status, response]) => [
    status,
    {
      description: response.description ?? STATUS_CODES[status],
      ...(response.schema !== undefined && {
        content: { [response.type ?? JSON_TYPE]: { schema: schemas.of(response.schema, "output") } },
      }),
    },
  ]);
  const problems = Object.entries(each.problems).map(([status, meaning]) => [
    status,
    { description: meaning, content: { [PROBLEM_MEDIA_TYPE]: { schema: problem } } },
  ]);
  return {
    ...(id !== undefined && { operationId: id }),
    ...(tag !== undefined && { tags: [tag] }),
    summary,
    ...(description !== undefined && { description }),
    ...(security !== undefined && { security }),
    ...extensions,
    parameters: parametersOf(each, schemas),
    ...(body !== undefined && {
      requestBody: {
        required: body.optional !== true,
        content: { [body.type ?? JSON_TYPE]: { schema: schemas.of(body.schema, "input") } },
      },
    }),
    responses: Object.fromEntries([...responses, ...problems]) as Json,
  };
}

function parametersOf(each: DescribedOperation, schemas: NamedSchemas): Json[] {
  const inPath = [...each.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => {
    const description = each.parameters?.[name];
    return {
      name,
      in: "path",
      required: true,
      ...(description !== undefined && { description }),
      schema: { type: "string" },
    };
  });
  const from = (place: "query" | "header", schema: z.ZodType | undefined): Json[] => {
    if (schema === undefined) return [];
    const { properties = {}, required = [] } = schemas.of(schema, "input") as {
      readonly properties?: Readonly<Record<string, Json>>;
      readonly required?: readonly string[];
    };
    return Object.entries(properties).map(([name, { description, ...rest }]) => ({
      name,
      in: place,
      required: required.includes(name),
      ...(description !== undefined && { description }),
      schema: rest,
    }));
  };
  return [...inPath, ...from("query", each.query), ...from("header", each.headers)];
}

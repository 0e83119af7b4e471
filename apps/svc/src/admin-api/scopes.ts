import type { TokenLimits } from "../scopes/demand.ts";
import { z } from "zod";
import { FieldError, SvcError } from "../errors.ts";
import { splitRepository } from "../repository-name.ts";
import type { ExplainedRequest, ScopeExplainer } from "../administration/explain.ts";
import { isWellFormed } from "../credentials/token-format.ts";
import { EVERYTHING, parseScopes } from "../scopes/scopes.ts";
import type { TokenLookup } from "../tokens/token-lookup.ts";
import { operation, type Operation } from "./operation.ts";
import { ALONGSIDE_FIELDS } from "./validation.ts";

const MAX_REPOSITORIES = 100;
const MAX_URL = 8192;
const MAX_QUERY = 256 * 1024;

const graphqlRequest = z.union([
  z.string().min(1).max(MAX_QUERY),
  z.strictObject({
    query: z.string().min(1).max(MAX_QUERY),
    variables: z.record(z.string(), z.unknown()).optional(),
    operationName: z.string().max(200).optional(),
  }),
]);

/** Body of POST: which token or scopes, and which request. */
export const explainRequestSchema = z
  .strictObject({
    token: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .meta({ description: "A token of this service, by its value" }),
    scopes: z
      .string()
      .min(1)
      .max(2000)
      .optional()
      .meta({ description: "In its place: what it would be minted with" }),
    repositories: z.array(z.string().min(1).max(201)).min(1).max(MAX_REPOSITORIES).optional(),
    method: z
      .string()
      .regex(/^[A-Z]{1,20}$/, "must be a method in capitals")
      .optional()
      .meta({ description: "Default GET" }),
    url: z.string().min(1).max(MAX_URL).optional().meta({
      description: "An address of the code host or of this service, or a path of the API",
      example: "/repos/acme/widgets/issues",
    }),
    graphql: graphqlRequest.optional().meta({ description: "A query, or a whole request with variables" }),
  })
  .superRefine((body, context) => {
    const exactlyOne = (one: "token" | "url", other: "scopes" | "graphql"): void => {
      if ((body[one] === undefined) === (body[other] === undefined)) {
        context.addIssue({ code: "custom", path: [one], message: `give either ${one} or ${other}` });
      }
    };
    exactlyOne("token", "scopes");
    exactlyOne("url", "graphql");
    if (body.scopes !== undefined && body.repositories === undefined) {
      context.addIssue({ code: "custom", path: ["repositories"], message: "required with scopes" });
    }
    if (body.token !== undefined && body.repositories !== undefined) {
      context.addIssue({ code: "custom", path: ["repositories"], message: "a token has its own" });
    }
  }, ALONGSIDE_FIELDS)
  .meta({ id: "ExplainRequest" });

export const explanationSchema = z
  .strictObject({
    allowed: z.boolean(),
    rule: z.string().meta({ description: "What was looked up", example: "GET /repos/{owner}/{repo}/issues" }),
    needs: z
      .array(z.string())
      .meta({ description: "Scopes that the request needs, all of them; `a or b`: either of the two" }),
    repositories: z.array(z.string()).meta({ description: "Repositories that it concerns" }),
    message: z.string(),
  })
  .meta({ id: "Explanation" });

/** Why a token may do something, or not. */
export function scopeOperations(explainer: ScopeExplainer, lookup: TokenLookup): Operation[] {
  return [
    operation({
      method: "POST",
      path: "/api/scopes/explain",
      id: "explainScopes",
      tag: "Tokens",
      summary: "Say whether a token may make a request, and by which rule, without making it",
      access: "user",
      body: explainRequestSchema,
      result: explanationSchema,
      successStatus: 200,
      refusals: { 404: "No token has this value" },
      async handle({ body }) {
        const limits = body.token === undefined ? givenLimits(body) : await knownLimits(lookup, body.token);
        const request: ExplainedRequest =
          body.graphql === undefined
            ? { kind: "address", method: body.method ?? "GET", url: body.url ?? "" }
            : { kind: "graphql", body: body.graphql };
        return { status: 200, body: await explainer.explain(limits, request) };
      },
    }),
  ];
}

/** Whoever has a token's value may use it, and so may know what it is good for. */
async function knownLimits(lookup: TokenLookup, text: string): Promise<TokenLimits> {
  const known = isWellFormed(text) ? await lookup.find(text) : undefined;
  if (known === undefined) throw new SvcError("not_found", "No token has this value");
  return known.record;
}

/** The limits of a token that is not made yet. @throws FieldError */
export function givenLimits(body: z.output<typeof explainRequestSchema>): TokenLimits {
  const { scopes, faults } = parseScopes(body.scopes ?? "");
  const repositories = body.repositories ?? [];
  const wrong = repositories.flatMap((text, index) => {
    const parts = text === EVERYTHING ? undefined : splitRepository(text);
    return typeof parts === "string" ? [{ pointer: `/repositories/${index}`, message: parts }] : [];
  });
  const found = [...faults.map((message) => ({ pointer: "/scopes", message })), ...wrong];
  if (found.length > 0) throw new FieldError(found);
  return { scopes, repositories };
}

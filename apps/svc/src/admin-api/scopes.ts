import { z } from "zod";
import { explainRequestSchema, type Explanations } from "../administration/tokens/explanations.ts";
import { operation, type Operation } from "./operation.ts";

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

/** Explanations of what a token may do. */
export function scopeOperations(explanations: Explanations): Operation[] {
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
      refusals: { 404: "No token has this value" },
      handle: async ({ body }) => ({ body: await explanations.explain(body) }),
    }),
  ];
}

import type { Logger } from "@devplat/base";
import type { Context, Hono } from "hono";
import type { AuditTrail } from "../audit/audit-event.ts";
import type { Authenticator } from "../identity/login/authenticator.ts";
import { readJson } from "../http/request/request-body.ts";
import { clientOf, requestFacts } from "../http/request/management-client.ts";
import { admit } from "../administration/permission.ts";
import { successStatusOf, type Operation } from "./operation.ts";
import { INTERNAL, ProblemError, documentOf, problemOf, problemResponse } from "../http/request/problem.ts";
import { validateQuery } from "../http/request/validation.ts";

export interface RouterParts {
  readonly authenticator: Authenticator;
  readonly audit: AuditTrail;
  readonly logger: Logger;
}

/** Serves the operations, and 405 with `Allow` for another method of their paths. */
export function addOperations(app: Hono, operations: readonly Operation[], parts: RouterParts): void {
  const paths = [...new Set(operations.map(({ path }) => path))];
  // A path of fixed words comes before a path with a parameter that matches it: /api/tokens/revoke is not a token.
  for (const path of paths.toSorted((a, b) => Number(a.includes("{")) - Number(b.includes("{")))) {
    const ofPath = operations.filter((each) => each.path === path);
    for (const each of ofPath) addOperation(app, each, parts);
    const methods = ofPath.map(({ method }) => method as string);
    if (methods.includes("GET")) methods.push("HEAD");
    const allow = methods.join(", ");
    app.all(honoPath(path), () =>
      problemResponse({
        code: "method_not_allowed",
        detail: `This path takes ${allow}`,
        headers: { Allow: allow },
      }),
    );
  }
}

function addOperation(app: Hono, each: Operation, parts: RouterParts): void {
  app.on(each.method, honoPath(each.path), async (context) => {
    try {
      return await serve(each, context, parts);
    } catch (error) {
      const problem = problemOf(error);
      if (problem === undefined || documentOf(problem).status >= 500) {
        parts.logger.error({ err: error, operation: each.id }, "an administration request failed");
      }
      return problemResponse(problem ?? INTERNAL);
    }
  });
}

async function serve(
  each: Operation,
  context: Context,
  { authenticator, audit }: RouterParts,
): Promise<Response> {
  const facts = requestFacts(context);
  const client = clientOf(context);
  if (each.method !== "GET" && authenticator.isForeignPage(facts)) {
    throw new ProblemError({
      code: "forbidden",
      detail: "Pages of other origins may not do this",
    });
  }
  const actor =
    each.access === "public"
      ? undefined
      : admit(
          {
            caller: await authenticator.identify(facts),
            client,
            path: context.req.path,
            operation: each.id,
            hasCredential: facts.authorization !== undefined,
          },
          each.access,
          audit,
        );
  const query =
    each.query === undefined ? {} : validateQuery(each.query, new URL(context.req.url).searchParams);
  const body = each.body === undefined ? undefined : await readJson(context.req.raw);
  const response = await each.handle({
    get actor() {
      if (actor === undefined) throw new Error(`${each.id} is for anybody and has no caller`);
      return actor;
    },
    client,
    id: context.req.param("id") ?? "",
    query,
    body,
    ifMatch: context.req.header("if-match"),
  });
  const status = successStatusOf(each);
  const { headers, body: result } = response ?? {};
  if (result === undefined) return new Response(null, { status, headers: { ...headers } });
  return new Response(JSON.stringify(result), {
    status,
    headers: { ...headers, "Content-Type": "application/json" },
  });
}

/** `/api/x/{id}` as Hono writes it: `/api/x/:id`. */
function honoPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}

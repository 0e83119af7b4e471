import type { Identity } from "../identity/principal.ts";
import type { Logger } from "@devplat/base";
import type { Context, Hono } from "hono";
import { managementSource } from "../identity/audit-source.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import type { Authenticator, Caller, RequestFacts } from "../identity/login/authenticator.ts";
import { BRAND } from "../brand.ts";
import { readJson } from "../http/request/request-body.ts";
import { clientOf } from "../http/request/management-client.ts";
import type { Access, Operation } from "./operation.ts";
import { INTERNAL, ProblemError, documentOf, problemOf, problemResponse } from "../http/request/problem.ts";
import { validateBody, validateQuery } from "./validation.ts";

export interface RouterParts {
  readonly authenticator: Authenticator;
  readonly audit: AuditTrail;
  readonly logger: Logger;
}

/** Serves the operations: who, then how, then what; and 405 with `Allow` for their paths with another method. */
export function addOperations(app: Hono, operations: readonly Operation[], parts: RouterParts): void {
  const paths = [...new Set(operations.map(({ path }) => path))];
  // A path of fixed words goes before one with a parameter that would match it: /api/tokens/revoke is no token.
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

/** What the authenticator looks at. */
export function requestFacts(context: Context): RequestFacts {
  return {
    method: context.req.method,
    authorization: context.req.header("authorization"),
    cookie: context.req.header("cookie"),
    origin: context.req.header("origin"),
    host: context.req.header("host"),
  };
}

/** @throws ProblemError 401 or 403 */
export function requireAccess(caller: Caller, access: Access): Identity | undefined {
  if (caller.kind === "identity") {
    if (access === "admin" && caller.identity.role !== "admin") {
      throw new ProblemError({
        code: "forbidden",
        detail: "This needs the admin role",
        ...(caller.identity.device === undefined
          ? {}
          : { hint: `Sign in again with "${BRAND.command} auth login --admin", if you are an admin.` }),
      });
    }
    return caller.identity;
  }
  if (access === "public") return undefined;
  if (caller.kind === "refused") {
    throw new ProblemError({ code: "forbidden", detail: caller.message });
  }
  throw new ProblemError({
    code: "unauthorized",
    detail: caller.message,
    headers: { "WWW-Authenticate": `Bearer realm="${BRAND.command}"` },
  });
}

/** {@link requireAccess}, with refusals written down; that somebody without a credential was asked for one is no deed. */
function admitted(
  caller: Caller,
  each: Operation,
  context: Context,
  audit: AuditTrail,
): Identity | undefined {
  try {
    return requireAccess(caller, each.access);
  } catch (error) {
    const anonymous = context.req.header("authorization") === undefined && caller.kind === "nobody";
    if (!anonymous) {
      const identity = caller.kind === "identity" ? caller.identity : undefined;
      audit.record({
        action: "access.denied",
        outcome: "denied",
        target: context.req.path,
        ...managementSource(identity, clientOf(context)),
        details: { operation: each.id },
      });
    }
    throw error;
  }
}

async function serve(
  each: Operation,
  context: Context,
  { authenticator, audit }: RouterParts,
): Promise<Response> {
  const facts = requestFacts(context);
  if (each.method !== "GET" && authenticator.isForeignPage(facts)) {
    throw new ProblemError({
      code: "forbidden",
      detail: "Pages of other origins may not do this",
    });
  }
  const identity =
    each.access === "public"
      ? undefined
      : admitted(await authenticator.identify(facts), each, context, audit);
  const query =
    each.query === undefined ? {} : validateQuery(each.query, new URL(context.req.url).searchParams);
  const body = each.body === undefined ? undefined : validateBody(each.body, await readJson(context.req.raw));
  const answer = await each.handle({
    identity,
    parameters: context.req.param() as Record<string, string>,
    query,
    body,
    ifMatch: context.req.header("if-match"),
    client: clientOf(context),
  });
  if (answer.body === undefined) {
    return new Response(null, { status: answer.status, headers: { ...answer.headers } });
  }
  return new Response(JSON.stringify(answer.body), {
    status: answer.status,
    headers: { ...answer.headers, "Content-Type": "application/json" },
  });
}

/** `/api/x/{id}` as Hono writes it: `/api/x/:id`. */
function honoPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}

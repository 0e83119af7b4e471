import type { MiddlewareHandler } from "hono";
import type { Environment } from "../../http-api/environment.ts";
import { PROBLEMS } from "../../http-api/problems/problem.ts";
import { parseForm } from "../../peer-actions/form.ts";
import { REPLACEMENT } from "../../../secrets/form-text.ts";
import { problemResponse } from "./responses.ts";
import type { RouteParts } from "./route-parts.ts";

/**
 * Refuses a form that is not UTF-8, as no browser sends it: reading it would put U+FFFD in place of bytes, and a value
 * would be stored as another one. Comes after the checks of who may send a form, because it reads the body.
 */
export function readableFormOnly(parts: RouteParts): MiddlewareHandler<Environment> {
  return async (c, next) => {
    // Two readings of up to 8 MiB: the strict and slow one only where the quick one has put something in place of bytes.
    const bytes = new Uint8Array(await c.req.arrayBuffer());
    const quick = new URLSearchParams(new TextDecoder().decode(bytes));
    if ([...quick].some((entry) => entry.join("").includes(REPLACEMENT))) {
      const fields = parseForm(bytes);
      if (fields === undefined || [...fields.values()].includes(undefined))
        return await problemResponse(c, parts, PROBLEMS.unreadableForm);
    }
    return await next();
  };
}

import { z } from "zod";
import { ProblemError } from "../http/request/problem.ts";
import { positionOf } from "../storage/list-order.ts";

const CURSOR = { description: "From the `Link` header of the page before" };
const CURSOR_FAULT = "must be from the Link header of the page before";
/** The key of a sorted list: an id, or an owner and a name with a maximum of 100 characters each. */
const KEY = /^[\w./-]{1,201}$/;

/** The query parameters of a list that comes in pages. */
export const pagingQuery = {
  limit: z
    .string()
    .regex(/^(?:[1-9]\d{0,2}|1000)$/, "must be a number from 1 to 1000")
    .optional(),
  cursor: z
    .string()
    .refine((text) => keyOf(text) !== undefined, CURSOR_FAULT)
    .optional()
    .meta(CURSOR),
};

/** The same for lists whose pages the database cuts, ordered by time. */
export const timePagingQuery = {
  ...pagingQuery,
  cursor: z
    .string()
    .refine((text) => positionOf(text) !== undefined, CURSOR_FAULT)
    .optional()
    .meta(CURSOR),
};

/** @throws ProblemError when the cursor of a list that is ordered by time has another form */
export function requireTimeCursor(cursor: string | undefined): void {
  if (cursor === undefined || positionOf(cursor) !== undefined) return;
  throw new ProblemError({ code: "bad_parameter", detail: `Query parameter "cursor": ${CURSOR_FAULT}` });
}

/** A key of a sorted list as a cursor. */
export function encodeCursor(key: string): string {
  return Buffer.from(key).toString("base64url");
}

/** The key in a cursor; undefined: {@link encodeCursor} did not make it. */
export function keyOf(cursor: string): string | undefined {
  const key = Buffer.from(cursor, "base64url").toString();
  return KEY.test(key) && encodeCursor(key) === cursor ? key : undefined;
}

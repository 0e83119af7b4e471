import type { ServerResponse } from "node:http";
import { PROBLEM_MEDIA_TYPE } from "@devplat/web-kit";
import type { Context } from "hono";
import type { Environment } from "./environment.ts";
import {
  PROBLEM_TYPES,
  documentOf,
  type Problem,
  type ProblemExtensions,
  type ProblemStatus,
} from "./problems/problem.ts";

/** A host that waits for consent asks again after this, in seconds. */
const CONSENT_RETRY_SECONDS = 2;

/** Responds with a problem document. */
export function problemResponse(
  c: Context<Environment>,
  problem: Problem,
  extensions?: ProblemExtensions,
): Response {
  const headers = { "Content-Type": PROBLEM_MEDIA_TYPE };
  return c.body(JSON.stringify(documentOf(problem, extensions)), problemStatus(c, problem), headers);
}

/** A problem's status, with the headers that go with it already set. */
export function problemStatus(c: Context<Environment>, { code }: Problem): ProblemStatus {
  const { status } = PROBLEM_TYPES[code];
  if (status === 401) c.header("WWW-Authenticate", 'Bearer realm="daemon"');
  if (code === "consent_pending") c.header("Retry-After", String(CONSENT_RETRY_SECONDS));
  if (status === 413) c.header("Connection", "close");
  return status;
}

/** The same before routing, for a connection that gets nothing else: no page, because its style sheet is refused too. */
export function refuse(response: ServerResponse, path: string, problem: Problem): void {
  const json = isForPrograms(path);
  const document = documentOf(problem);
  const { status, detail, hint = "" } = document;
  response.writeHead(status, {
    "Content-Type": json ? PROBLEM_MEDIA_TYPE : "text/plain; charset=utf-8",
    Connection: "close",
  });
  response.end(json ? JSON.stringify(document) : `${`${detail}\n${hint}`.trim()}\n`);
}

/** Whether a path is for programs. They get problems as documents. A browser gets a page. */
export function isForPrograms(path: string): boolean {
  return path.startsWith("/api/") || path === "/api" || path === "/metrics";
}

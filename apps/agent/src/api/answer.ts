import type { ServerResponse } from "node:http";
import type { Context } from "hono";
import type { Environment } from "./environment.ts";
import { PROBLEM_STATUS, type Problem } from "./problem.ts";

/** Answers with a problem document. */
export function answerProblem(c: Context<Environment>, problem: Problem): Response {
  return c.json(problem, problemStatus(c, problem));
}

/** A problem's status, with the headers that go with it already set. */
export function problemStatus(
  c: Context<Environment>,
  problem: Problem,
): (typeof PROBLEM_STATUS)[Problem["code"]] {
  const status = PROBLEM_STATUS[problem.code];
  if (status === 401) c.header("WWW-Authenticate", 'Bearer realm="daemon"');
  if (status === 413) c.header("Connection", "close");
  return status;
}

/** The same before routing, for a connection that gets nothing else: no page, because its style sheet is refused too. */
export function refuse(response: ServerResponse, path: string, problem: Problem): void {
  const json = isForPrograms(path);
  const text = [problem.error, problem.hint ?? ""].join("\n").trim();
  response.writeHead(PROBLEM_STATUS[problem.code], {
    "Content-Type": json ? "application/json" : "text/plain; charset=utf-8",
    Connection: "close",
  });
  response.end(json ? JSON.stringify(problem) : `${text}\n`);
}

/** Whether a program asks here: it gets problems as documents, where a browser gets a page. */
export function isForPrograms(path: string): boolean {
  return path.startsWith("/api/") || path === "/api" || path === "/metrics";
}

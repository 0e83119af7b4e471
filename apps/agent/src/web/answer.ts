import type { ServerResponse } from "node:http";
import { html } from "@devplat/web-kit";
import type { Context } from "hono";
import { PROBLEM_STATUS, type Problem } from "../api/problem.ts";
import type { Environment, RouteParts } from "./environment.ts";
import { problemPage } from "./pages/problem-page.ts";

/** Answers with a problem: JSON under /api/ and for the probes, a page elsewhere. */
export async function answerProblem(
  c: Context<Environment>,
  parts: Pick<RouteParts, "assets">,
  problem: Problem,
): Promise<Response> {
  const status = PROBLEM_STATUS[problem.code];
  if (status === 401) c.header("WWW-Authenticate", 'Bearer realm="daemon"');
  if (status === 413) c.header("Connection", "close");
  if (isForPrograms(c.req.path)) return c.json(problem, status);
  if (isForPart(c)) return c.html(html`<span class="error">${problem.error}</span>`, status);
  return c.html(problemPage(parts.assets, problem), status);
}

/** Whether a page asks for a part of itself (htmx says so). */
export function isForPart(c: Context<Environment>): boolean {
  return c.req.header("HX-Request") === "true";
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

function isForPrograms(path: string): boolean {
  return path.startsWith("/api/") || path === "/api" || path === "/metrics";
}

import { html } from "@devplat/web-kit";
import type { Context } from "hono";
import { answerProblem as answerDocument, isForPrograms, problemStatus } from "../api/answer.ts";
import type { Environment } from "../api/environment.ts";
import type { Problem } from "../api/problem.ts";
import { problemPage } from "./pages/problem-page.ts";
import type { RouteParts } from "./route-parts.ts";

/** Answers with a problem: a document under /api/ and for the probes, a page elsewhere. */
export async function answerProblem(
  c: Context<Environment>,
  parts: Pick<RouteParts, "assets">,
  problem: Problem,
): Promise<Response> {
  if (isForPrograms(c.req.path)) return answerDocument(c, problem);
  const status = problemStatus(c, problem);
  if (isForPart(c)) return c.html(html`<span class="error">${problem.error}</span>`, status);
  return c.html(problemPage(parts.assets, problem), status);
}

/** Whether a page asks for a part of itself (htmx says so). */
export function isForPart(c: Context<Environment>): boolean {
  return c.req.header("HX-Request") === "true";
}

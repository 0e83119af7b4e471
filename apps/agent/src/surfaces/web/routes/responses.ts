import { html, type Html } from "@devplat/web-kit";
import type { Context } from "hono";
import {
  problemResponse as answerDocument,
  isForPrograms,
  problemStatus,
} from "../../http-api/problem-response.ts";
import type { Environment } from "../../http-api/environment.ts";
import type { Problem } from "../../http-api/problems/problem.ts";
import { draftOf } from "./draft.ts";
import { problemPage, siteProblemPage } from "../pages/problem-page.ts";
import { unsavedPage } from "../pages/secrets/unsaved-page.ts";
import type { RouteParts } from "./route-parts.ts";

/** Problem of a form that no page of this daemon has sent. */
const NO_DRAFT: ReadonlySet<Problem["code"]> = new Set(["origin_refused", "bad_path"]);

/** Answers with a problem: a document under /api/ and for the probes, a page elsewhere, with the site's header for a signed-in user,
 * and with what was typed into a form that has failed. */
export async function problemResponse(
  c: Context<Environment>,
  parts: Pick<RouteParts, "assets" | "accessCheck" | "view">,
  problem: Problem,
): Promise<Response> {
  if (isForPrograms(c.req.path)) return answerDocument(c, problem);
  const status = problemStatus(c, problem);
  if (isForPart(c)) return c.html(partProblem(c, problem), status);
  const inSite = isInSite(c, parts, problem);
  const draft = NO_DRAFT.has(problem.code) ? undefined : await draftOf(c, inSite);
  if (draft !== undefined) {
    return c.html(
      unsavedPage(parts.assets, inSite ? parts.view.status() : undefined, draft, problem),
      status,
    );
  }
  if (!inSite) return c.html(problemPage(parts.assets, problem), status);
  const page = { path: c.req.path, shown: c.req.method !== "POST" };
  return c.html(siteProblemPage(parts.assets, parts.view.status(), problem, page), status);
}

/** Nobody whom a check of the request turned away sees anything of the site. */
function isInSite(
  c: Context<Environment>,
  { accessCheck, view }: Pick<RouteParts, "accessCheck" | "view">,
  { code }: Problem,
): boolean {
  if (!c.req.path.startsWith("/ui/") || code === "origin_refused") return false;
  return accessCheck.isUnlocked(c.env.incoming) && view.status().authenticated;
}

/** A row that could not be loaded takes the place of a row. */
function partProblem(c: Context<Environment>, { detail }: Problem): Html {
  const words = html`<span class="error">${detail}</span>`;
  const part = c.req.query("part");
  if (part !== "edit" && part !== "row") return words;
  return html`<tr role="row">
    <td role="cell" colspan="3">${words} <a href="">Load the page again</a></td>
  </tr>`;
}

/** Whether a page requests a part of itself, by the header of htmx. */
export function isForPart(c: Context<Environment>): boolean {
  return c.req.header("HX-Request") === "true";
}

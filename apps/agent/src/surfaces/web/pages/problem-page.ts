import { html, type Assets, type Html } from "@devplat/web-kit";
import { documentOf, type Problem } from "../../http-api/problems/problem.ts";
import type { AgentStatus } from "../../../status.ts";
import { plainPage, sectionOf, sitePage } from "./layout.ts";

/** A problem as a page outside of the main site. */
export function problemPage(assets: Assets, problem: Problem): Html {
  const title = titleOf(problem, "Not done");
  return plainPage(
    assets,
    title,
    html`${words(problem, title)}
      <p class="form-actions"><a class="button" href="/">Back to the start</a></p>`,
  );
}

/**
 * The same inside the main site, whose header says how the store is, and leads on.
 *
 * @param shown whether a page was asked for, which may be asked for again; else something was to be done
 */
export function siteProblemPage(
  assets: Assets,
  status: AgentStatus,
  problem: Problem,
  { path, shown }: { readonly path: string; readonly shown: boolean },
): Html {
  const title = titleOf(problem, shown ? "Cannot be shown" : "Not done");
  const again = shown && problem.code === "store_unavailable";
  const content = html`<section class="card stack">
    ${words(problem, title)}
    ${again ? html`<p class="form-actions"><a class="button" href="">Try again</a></p>` : ""}
  </section>`;
  return sitePage(assets, status, title, content, { section: sectionOf(path) });
}

function titleOf({ code }: Problem, otherwise: string): string {
  return code === "not_found" || code === "removed" ? "Not found" : otherwise;
}

function words(problem: Problem, title: string): Html {
  const { detail, hint } = documentOf(problem);
  return html`<h1>${title}</h1>
    <p>${detail}</p>
    ${hint === undefined ? "" : html`<p class="muted">${hint}</p>`}`;
}

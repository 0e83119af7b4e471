import { html, type Assets, type Html } from "@devplat/web-kit";
import type { Problem } from "../../api/problem.ts";
import { plainPage } from "./layout.ts";

/** An error for somebody in front of a browser. */
export function problemPage(assets: Assets, problem: Problem): Html {
  return plainPage(
    assets,
    "Not done",
    html`<h1>${problem.code === "not_found" || problem.code === "removed" ? "Not found" : "Not done"}</h1>
      <p>${problem.error}</p>
      ${problem.hint === undefined ? "" : html`<p class="muted">${problem.hint}</p>`}
      <p class="form-actions"><a class="button" href="/">Back to the start</a></p>`,
  );
}

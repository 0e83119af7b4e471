import { html, sentence, type Html } from "@devplat/web-kit";

/** Notice while ssh.yaml is not valid; empty otherwise. @param problem names the line */
export function fileNotice(problem: string | undefined): Html | string {
  if (problem === undefined) return "";
  return html`<div class="banner bad">
    The file of the remotes is not valid, so nothing can be changed here. Forwards that are up stay up.
    <div class="small mono wrap">${sentence(problem)}</div>
  </div>`;
}

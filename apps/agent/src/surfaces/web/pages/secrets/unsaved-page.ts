import { html, type Assets, type Html } from "@devplat/web-kit";
import { documentOf, type Problem } from "../../../http-api/problems/problem.ts";
import { carriedText } from "../../../../secrets/form-text.ts";
import { lastName } from "../../../../secrets/url-path.ts";
import type { AgentStatus } from "../../../../status.ts";
import type { Draft } from "../../state/draft.ts";
import { plainDraftPage, sitePage } from "../layout.ts";
import { nameInput, typedFormAttributes, valueInput } from "./field-row.ts";
import { crumbs } from "./frame.ts";
import { secretUrl } from "./links.ts";

/**
 * The answer to a form whose action has failed: the reason, and what was typed, to be tried again. It asks the store for
 * nothing, because that may be what has failed.
 *
 * @param status undefined without access or sign-in: then nothing of the site is shown
 */
export function unsavedPage(
  assets: Assets,
  status: AgentStatus | undefined,
  draft: Draft,
  problem: Problem,
): Html {
  const title = `${TITLES[draft.action]}: ${draft.action === "new" ? draft.name : lastName(draft.path)}`;
  const content = html`<h1 class="wrap">${title}</h1>
    <div class="banner bad stack tight" role="alert">
      <p>${problem.detail} ${hintOf(problem)}</p>
      ${wayBack(problem)}
    </div>
    ${draft.action === "new" ? nameForm(draft) : fieldForm(draft, problem)}
    <p class="hint">
      Your text is in this page and nowhere else. Keep the page open until the text is saved.
    </p>`;
  if (status === undefined) return plainDraftPage(assets, title, content);
  const card = html`${crumbs(draft.path)}
    <section class="card stack">${content}</section>`;
  return sitePage(assets, status, title, card, { section: "Secrets" });
}

const TITLES: Readonly<Record<Draft["action"], string>> = {
  save: "Not saved",
  add: "Not saved",
  remove: "Not removed",
  new: "Not created",
};

/** The hints of these problems are for programs. */
function hintOf(problem: Problem): string {
  const { code, hint = "" } = documentOf(problem);
  if (code === "not_signed_in" || code === "unlock_required") return "";
  if (code !== "store_unavailable") return hint;
  return "Try again when it is back. If the text was saved after all, the next try finds that.";
}

function wayBack({ code }: Problem): Html | string {
  if (code === "not_signed_in")
    return html`<p>
      <a href="/" target="_blank" rel="noopener">Sign in in a second tab</a>, then come back and choose Try
      again.
    </p>`;
  if (code === "unlock_required")
    return html`<p>Run <code>agent open</code>, then come back and choose Try again.</p>`;
  return "";
}

function fieldForm(draft: Draft, { code }: Problem): Html {
  const { action, path, version, field, name, damaged } = draft;
  const text = carriedText(draft.text);
  // The focus is on the next step: the input to change, or the next try.
  const toChange = code === "exists" || code === "unusable_field";
  const focus = damaged ? "text" : toChange ? "name" : "again";
  const focusOn = (part: typeof focus): "data-focus" | "" => (part === focus ? "data-focus" : "");
  const again = html`<button
    class="${action === "remove" ? "danger" : "primary"}"
    type="submit"
    name="action"
    value="${action}"
    ${focusOn("again")}
  >
    Try again
  </button>`;
  return html`<form class="stack" method="post" action="${secretUrl(path)}" ${typedFormAttributes()}>
    <input type="hidden" name="version" value="${version}" />
    <input type="hidden" name="field" value="${field}" />
    <input type="hidden" name="again" value="true" />
    ${damaged ? html`<input type="hidden" name="damaged" value="true" />` : ""}
    <label class="field"
      ><span class="label">Field</span>${nameInput(carriedText(name), focusOn("name"))}</label
    >
    <label class="field"><span class="label">Value</span>${valueInput(text, focusOn("text"))}</label>
    <div class="form-actions">
      ${again}
      ${action === "remove" ? html`<button type="submit" name="action" value="save">Save</button>` : ""}
      <a class="button" href="${secretUrl(path)}">Discard</a>
    </div>
  </form>`;
}

function nameForm({ path, name }: Draft): Html {
  return html`<form class="stack" method="post" action="${secretUrl(path)}" ${typedFormAttributes()}>
    <input type="hidden" name="action" value="new" />
    <label class="field"
      ><span class="label">Name in <code>${path}</code></span
      >${nameInput(carriedText(name), "data-focus")}</label
    >
    <div class="form-actions">
      <button class="primary" type="submit">Try again</button>
      <a class="button" href="${secretUrl(path)}">Discard</a>
    </div>
  </form>`;
}

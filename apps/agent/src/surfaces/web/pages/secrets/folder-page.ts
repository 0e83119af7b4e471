import { html, type Html } from "@devplat/web-kit";
import type { SearchResult } from "../../../../secrets/search-names.ts";
import { lastName } from "../../../../secrets/url-path.ts";
import type { Listing } from "../../state/secret-listing.ts";
import { crumbs, secretsPage, type SecretsFrame } from "./frame.ts";
import { secretUrl } from "./links.ts";

/** Id of the field that takes a new secret's name: the way to it, as the names above may be many. */
const NEW_SECRET_ID = "new-secret";

/** `/ui/secrets/` and the folders below it: names, never values. */
export function folderPage(
  frame: SecretsFrame,
  folder: string,
  { names, fault }: Listing,
  creatable: boolean,
  typed = "",
): Html {
  const content = html`${folder === "" ? "" : crumbs(folder)}
    <div class="spread">
      <h1 class="wrap">${folder === "" ? "Secrets" : lastName(folder)}</h1>
      ${creatable && names.length > 0 ? html`<a class="button scripted-only" href="#${NEW_SECRET_ID}">New secret</a>` : ""}
    </div>
    ${fault === undefined ? "" : unlisted(fault)}
    ${
      names.length === 0
        ? html`<section class="card">
            <p class="empty">${fault === undefined ? "Nothing is stored here." : "No names to show."}</p>
          </section>`
        : nameList(names.map((name) => ({ path: folder + name, text: name })))
    }
    ${creatable ? newSecretForm(folder, typed) : ""}`;
  return secretsPage(frame, folder === "" ? "Secrets" : folder, content);
}

/** `/ui/secrets/?q=…`: secrets whose path holds the words. */
export function searchPage(frame: SecretsFrame, query: string, { paths, incomplete }: SearchResult): Html {
  const found = paths.length === 1 ? "1 secret" : `${paths.length} secrets`;
  const content = html`<h1 class="wrap">Search: ${query}</h1>
    <p class="muted" role="status">
      ${found} found${incomplete ? ". Not every folder was looked into, or there are more." : "."}
    </p>
    ${paths.length === 0 ? "" : nameList(paths.map((path) => ({ path, text: path })))}`;
  return secretsPage(frame, `Search: ${query}`, content);
}

function unlisted(fault: string): Html {
  return html`<div class="banner bad spread">
    <p role="alert">${fault}</p>
    <a class="button small" href="">Try again</a>
  </div>`;
}

function nameList(entries: readonly { readonly path: string; readonly text: string }[]): Html {
  return html`<nav class="card" aria-label="Names">
    <ul class="tree names">
      ${entries.map(({ path, text }) => html`<li><a class="${path.endsWith("/") ? "folder" : ""}" href="${secretUrl(path)}">${text}</a></li>`)}
    </ul>
  </nav>`;
}

function newSecretForm(folder: string, typed: string): Html {
  return html`<section class="card stack scripted-only" aria-labelledby="new-heading">
    <h2 id="new-heading">New secret</h2>
    <form class="stack" method="post" action="${secretUrl(folder)}" autocomplete="off">
      <input type="hidden" name="action" value="new" />
      <label class="field">
        <span class="label">Name in <code>${folder}</code></span>
        <input
          class="mono"
          id="${NEW_SECRET_ID}"
          name="name"
          value="${typed}"
          required
          spellcheck="false"
          autocapitalize="off"
          ${typed === "" ? "" : "data-focus"}
        />
      </label>
      <p class="hint">One segment, without a slash.</p>
      <div class="form-actions"><button class="primary" type="submit">Continue</button></div>
    </form>
  </section>`;
}

import { html, type Html } from "@devplat/web-kit";
import type { SearchResult } from "../../../secrets/search-names.ts";
import { lastName } from "../../../secrets/url-path.ts";
import { crumbs, secretsPage, type SecretsFrame } from "./frame.ts";
import { secretUrl } from "./links.ts";

/** `/ui/secrets/` and the folders below it: names, never values. */
export function folderPage(
  frame: SecretsFrame,
  folder: string,
  names: readonly string[],
  creatable: boolean,
): Html {
  const content = html`${folder === "" ? "" : crumbs(folder)}
    <h1 class="wrap">${folder === "" ? "Secrets" : lastName(folder)}</h1>
    ${
      names.length === 0
        ? html`<section class="card"><p class="empty">Nothing is stored here.</p></section>`
        : nameList(names.map((name) => ({ path: folder + name, text: name })))
    }
    ${creatable ? newSecretForm(folder) : ""}`;
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

function nameList(entries: readonly { readonly path: string; readonly text: string }[]): Html {
  return html`<nav class="card" aria-label="Names">
    <ul class="tree">
      ${entries.map(({ path, text }) => html`<li><a href="${secretUrl(path)}">${text}</a></li>`)}
    </ul>
  </nav>`;
}

function newSecretForm(folder: string): Html {
  return html`<section class="card stack scripted-only" aria-labelledby="new-heading">
    <h2 id="new-heading">New secret</h2>
    <form class="stack" method="post" action="${secretUrl(folder)}" autocomplete="off">
      <input type="hidden" name="action" value="new" />
      <label class="field">
        <span class="label">Name in <code>${folder}</code></span>
        <input class="mono" name="name" required spellcheck="false" autocapitalize="off" />
      </label>
      <p class="hint">One segment, without a slash.</p>
      <div class="form-actions"><button class="primary" type="submit">Continue</button></div>
    </form>
  </section>`;
}

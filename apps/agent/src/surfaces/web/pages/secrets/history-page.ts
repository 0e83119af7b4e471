import type { SecretMetadata } from "@devplat/secret-store";
import { html, type Html } from "@devplat/web-kit";
import { lastName } from "../../../../secrets/url-path.ts";
import { timeText } from "../time-text.ts";
import { crumbs, secretsPage, type SecretsFrame } from "./frame.ts";
import { secretUrl } from "./links.ts";

/** `/ui/secrets/<key>?history=true`: the versions that can still be read; an old one can be made the newest again. */
export function historyPage(
  frame: SecretsFrame,
  path: string,
  { version: newest, versions }: SecretMetadata,
  editable: boolean,
): Html {
  const row = ({ version, createdAt }: SecretMetadata["versions"][number]): Html =>
    html`<tr role="row">
      <th scope="row" role="rowheader">
        Version ${version} ${version === newest ? html`<span class="badge good">newest</span>` : ""}
      </th>
      <td role="cell" data-label="Written">
        ${timeText(new Date(createdAt).toISOString(), frame.status.time)}
      </td>
      <td role="cell" class="actions">
        ${
          version === newest
            ? html`<a class="button small quiet" href="${secretUrl(path)}">Show</a>`
            : html`<a class="button small quiet" href="?version=${version}">Show</a>`
        }
        ${editable && version !== newest ? restoreForm(path, version, newest) : ""}
      </td>
    </tr>`;
  const content = html`${crumbs(path)}
    <div class="spread">
      <h1 class="wrap">${lastName(path)}: history</h1>
      <a class="button" href="${secretUrl(path)}">Back to the secret</a>
    </div>
    <section class="card flush">
      <table class="table" role="table" aria-label="Versions">
        <thead role="rowgroup">
          <tr role="row">
            <th scope="col" role="columnheader">Version</th>
            <th scope="col" role="columnheader">Written</th>
            <th scope="col" role="columnheader"><span class="visually-hidden">Actions</span></th>
          </tr>
        </thead>
        <tbody role="rowgroup">
          ${versions.toReversed().map(row)}
        </tbody>
      </table>
    </section>`;
  return secretsPage(frame, `${path}: history`, content);
}

function restoreForm(path: string, from: number, newest: number): Html {
  return html`<form class="scripted-only" method="post" action="${secretUrl(path)}">
    <input type="hidden" name="action" value="restore" />
    <input type="hidden" name="version" value="${newest}" />
    <input type="hidden" name="from" value="${from}" />
    <button class="small quiet" type="submit" aria-label="Restore version ${from}">Restore</button>
  </form>`;
}

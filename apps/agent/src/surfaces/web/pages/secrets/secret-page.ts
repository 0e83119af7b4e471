import type { SecretDocument } from "@devplat/secret-store";
import { html, type Html } from "@devplat/web-kit";
import { lastName } from "../../../../secrets/url-path.ts";
import type { WriteRefusal } from "../../../../secrets/write-policy.ts";
import { timeText } from "../time-text.ts";
import { fieldRow, nameInput, typedFormAttributes, valueInput } from "./field-row.ts";
import { crumbs, secretsPage, type SecretsFrame } from "./frame.ts";
import { secretUrl } from "./links.ts";
import { mountedPaths } from "./mounted-paths.ts";

/** A revealed value is hidden again after this time, in seconds (mission, "Limits"). */
const AUTO_HIDE_SECONDS = 30;

export interface SecretPageModel {
  readonly path: string;
  readonly document: SecretDocument;
  readonly revealed: boolean;
  /** Why it is read-only; undefined if it is not. */
  readonly readOnly: WriteRefusal | undefined;
  /** It is an old version that is shown. */
  readonly old: boolean;
}

/** `/ui/secrets/<key>`: heading, revision, fields. Reading and deleting work without scripting. */
export function secretPage(frame: SecretsFrame, model: SecretPageModel): Html {
  const { path, document, revealed, readOnly, old } = model;
  const editable = readOnly === undefined && !old;
  const name = lastName(path);
  const context = { path, revealed, editable, old };
  const content = html`${crumbs(path)}
    <div class="spread">
      <div class="cluster">
        <h1 class="wrap">${name}</h1>
        <span class="badge">version ${document.version}</span>
        <span class="small muted"
          >${timeText(new Date(document.createdAt).toISOString(), frame.status.time)}</span
        >
      </div>
      <div class="cluster">${pageActions(model)}</div>
    </div>
    ${old ? html`<p class="banner warn">This is an old version. <a href="${secretUrl(path)}">Show the newest</a></p>` : ""}
    ${readOnlyNote(readOnly)}
    <section class="card flush">
      <table class="table fields-table" role="table" aria-label="Fields of ${name}">
        <thead role="rowgroup">
          <tr role="row">
            <th scope="col" role="columnheader">Field</th>
            <th scope="col" role="columnheader">Value</th>
            <th scope="col" role="columnheader"><span class="visually-hidden">Actions</span></th>
          </tr>
        </thead>
        <tbody role="rowgroup">
          ${[...document.fields].map(([field, value]) => fieldRow(field, value, context))}
        </tbody>
      </table>
      ${document.fields.size === 0 ? html`<p class="empty">This secret has no fields.</p>` : ""}
    </section>
    ${old ? "" : mountedPaths(frame.status.fuse, path, document.fields.keys())}
    ${editable ? addFieldForm(path, document.version, "Add a field") : ""}
    ${editable ? html`<p class="hint unscripted-only">Editing needs scripting in the browser, and it is off.</p>` : ""}
    ${editable ? deleteForm(path) : ""}`;
  const refresh = revealed ? { seconds: AUTO_HIDE_SECONDS, url: hiddenUrl(model) } : undefined;
  return secretsPage(frame, path, content, refresh);
}

/** A path that holds nothing, inside an editable subtree: the first field creates the secret. */
export function createPage(frame: SecretsFrame, path: string): Html {
  const content = html`${crumbs(path)}
    <h1 class="wrap">${lastName(path)}</h1>
    <p>Nothing is stored here yet. The first field creates the secret.</p>
    ${addFieldForm(path, 0, "First field", true)}
    <p class="hint unscripted-only">Creating a secret needs scripting in the browser, and it is off.</p>`;
  return secretsPage(frame, path, content);
}

/** A path that holds nothing, where nothing can be created. */
export function absentPage(frame: SecretsFrame, path: string, readOnly: WriteRefusal | undefined): Html {
  const content = html`${crumbs(path)}
    <h1 class="wrap">${lastName(path)}</h1>
    <p>Nothing is stored here.</p>
    ${readOnlyNote(readOnly)}`;
  return secretsPage(frame, path, content);
}

function pageActions({ path, document, revealed, old }: SecretPageModel): Html {
  const version = old ? `version=${document.version}&` : "";
  return html`${
      revealed
        ? html`<a class="button" href="${old ? `?version=${document.version}` : secretUrl(path)}"
            >Hide all</a
          >`
        : html`<a class="button" href="?${version}reveal=true">Reveal all</a>`
    } <a class="button" href="?history=true">History</a>`;
}

function hiddenUrl({ path, document, old }: SecretPageModel): string {
  return old ? `${secretUrl(path)}?version=${document.version}` : secretUrl(path);
}

function readOnlyNote(reason: WriteRefusal | undefined): Html | string {
  if (reason === "enrolment") return html`<p class="hint">Read-only: an enrolment writes this secret.</p>`;
  if (reason === "outside")
    return html`<p class="hint">Read-only: it is outside <code>web.editable_paths</code>.</p>`;
  return "";
}

/** A blank row. The form returns the version; 0 creates. */
function addFieldForm(path: string, version: number, title: string, open = false): Html {
  const form = html`<form class="stack" method="post" action="${secretUrl(path)}" ${typedFormAttributes()}>
    <input type="hidden" name="action" value="add" />
    <input type="hidden" name="version" value="${version}" />
    <label class="field"><span class="label">Field</span>${nameInput("")}</label>
    <label class="field"><span class="label">Value</span>${valueInput("")}</label>
    <div class="form-actions">
      <button class="primary" type="submit">${version === 0 ? "Create secret" : "Add field"}</button>
    </div>
  </form>`;
  if (open) return html`<section class="card stack scripted-only" aria-label="${title}">${form}</section>`;
  return html`<details class="card scripted-only">
    <summary>${title}</summary>
    ${form}
  </details>`;
}

function deleteForm(path: string): Html {
  return html`<details class="card">
    <summary>Delete this secret</summary>
    <form class="stack" method="post" action="${secretUrl(path)}" autocomplete="off">
      <input type="hidden" name="action" value="delete" />
      <p>Every version is removed. This cannot be undone.</p>
      <label class="field">
        <span class="label">Type <code>${lastName(path)}</code> to confirm</span>
        <input class="mono" name="confirm" required spellcheck="false" autocapitalize="off" />
      </label>
      <div class="form-actions"><button class="danger" type="submit">Delete</button></div>
    </form>
  </details>`;
}

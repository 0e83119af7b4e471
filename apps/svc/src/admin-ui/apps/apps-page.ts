import { html, type Html } from "@devplat/web-kit";
import type { CheckedApp } from "../../administration/apps/apps.ts";
import type { ManifestForm } from "../../administration/apps/manifest-flow.ts";
import type { CodeHost } from "../../code-host/code-host.ts";
import { scopeTexts } from "../../scopes/scopes.ts";
import type { AppRecord } from "../../storage/store.ts";
import { EMPTY_FORM, doneBanner, formMessage, textField, type FormState } from "../common/form.ts";
import { formatTime } from "../common/format.ts";
import { factList, listCard } from "../common/card.ts";
import type { Page } from "../common/layout.ts";
import { dataTable } from "../common/table.ts";

const DONE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    registered: "The app was registered: the code host takes its key.",
    created: "The app was created and registered. Install it on the repositories that it is for.",
    default: "The app is the default now.",
    removed: "The app was removed here. At the code host it still exists.",
  }),
);

export interface AppsPageOptions {
  readonly apps: readonly AppRecord[];
  readonly codeHost: CodeHost;
  readonly hostName: string;
  readonly done?: string | undefined;
  readonly registerForm?: FormState;
  readonly manifestForm?: FormState;
  /** An app that was checked just now. */
  readonly checked?: CheckedApp | undefined;
}

/** The "Apps" section. */
export function appsPage(options: AppsPageOptions): Page {
  const { apps, codeHost, hostName, checked } = options;
  const done = DONE.get(options.done ?? "");
  return {
    title: "Apps",
    section: "/admin/apps",
    lead: html`Agent tokens and cache warming use an app of the code host. Its installations say which
    repositories they reach.`,
    content: html`${doneBanner(done)} ${checked === undefined ? "" : checkedCard(checked)}
    ${
      codeHost.apps === undefined
        ? html`<p class="banner">
            ${hostName} knows no apps: agent tokens are not available with it. For warming set
            <code>cache.service_token</code>.
          </p>`
        : html`${listCard({
            id: "list-heading",
            title: "Registered apps",
            aside: html`<span class="badge">${apps.length}</span>`,
            content: apps.length === 0 ? html`<p class="empty">No app yet.</p>` : table(apps, codeHost),
          })}
          ${manifestCard(options.manifestForm ?? EMPTY_FORM, hostName)}
          ${registerCard(options.registerForm ?? EMPTY_FORM)}`
    }`,
  };
}

function table(apps: readonly AppRecord[], codeHost: CodeHost): Html {
  return dataTable({
    caption: "Apps with their origin and what can be done with them",
    columns: ["App", "Id", "Owner", "From", "Webhook secret", "Since"],
    actions: true,
    rows: apps.map((app) => row(app, codeHost)),
  });
}

function row(app: AppRecord, codeHost: CodeHost): Html {
  const install = codeHost.apps?.installUrl(app.slug);
  return html`<tr>
    <th scope="row" class="wrap">
      ${app.name} ${app.isDefault ? html`<span class="badge accent">default</span>` : ""}
    </th>
    <td data-label="Id" class="mono">${app.appId}</td>
    <td data-label="Owner" class="wrap">${app.ownerLogin ?? "–"}</td>
    <td data-label="From">${app.source}</td>
    <td data-label="Webhook secret">${app.webhookSecret === undefined ? "none" : "set"}</td>
    <td data-label="Since" class="nowrap">${formatTime(app.createdAt)}</td>
    <td>
      <div class="actions">
        <form method="post" action="/admin/apps/${app.id}/check">
          <button class="small" aria-label="Check ${app.name}">Check</button>
        </form>
        ${
          app.isDefault
            ? ""
            : html`<form method="post" action="/admin/apps/${app.id}/default">
                <button class="small" aria-label="Make ${app.name} the default">Make default</button>
              </form>`
        }
        ${install === undefined ? "" : html`<a class="button small" href="${install}" rel="noreferrer">Install</a>`}
        <a class="button small danger" href="/admin/apps/${app.id}/remove" aria-label="Remove ${app.name}"
          >Remove</a
        >
      </div>
    </td>
  </tr>`;
}

function checkedCard({ app, host, installations }: CheckedApp): Html {
  const permissions = scopeTexts(host.permissions).toSorted((a, b) => a.localeCompare(b));
  const places = installations.map(({ account, selection, suspended }) => {
    const repositories = selection === "all" ? "all repositories" : "chosen repositories";
    return `${account} (${repositories}${suspended ? ", suspended" : ""})`;
  });
  return html`<section class="card stack" aria-labelledby="checked-heading">
    <div class="spread">
      <h2 id="checked-heading">${app.name}</h2>
      <span class="status good">Its key works</span>
    </div>
    ${factList([
      ["Permissions", html`<span class="wrap">${permissions.join(", ")}</span>`],
      [
        "Installed on",
        html`<span class="wrap">${places.length === 0 ? "nothing yet" : places.join(", ")}</span>`,
      ],
    ])}
  </section>`;
}

function manifestCard(form: FormState, hostName: string): Html {
  return html`<section class="card stack" aria-labelledby="manifest-heading">
    <h2 id="manifest-heading">Create a new app</h2>
    <p class="muted">${hostName} asks you once, and then hands the app's key over to this service.</p>
    ${formMessage(form)}
    <form class="stack" method="post" action="/admin/apps/manifest">
      <div class="fields">
        ${textField({ id: "manifest-name", name: "name", label: "Name", hint: `Unique at ${hostName}`, required: true, form })}
        ${textField({ id: "manifest-owner", name: "owner", label: "Organization", unit: "(empty: your own account)", form })}
      </div>
      <div class="form-actions"><button class="primary">Continue</button></div>
    </form>
  </section>`;
}

function registerCard(form: FormState): Html {
  const fault = form.faults["private_key"];
  return html`<section class="card stack" aria-labelledby="register-heading">
    <h2 id="register-heading">Register an app that exists</h2>
    ${formMessage(form)}
    <form class="stack" method="post" action="/admin/apps">
      <div class="fields">
        ${textField({ id: "app-id", name: "app_id", label: "App ID", inputMode: "numeric", required: true, form })}
        ${textField({ id: "app-webhook", name: "webhook_secret", label: "Webhook secret", unit: "(optional)", type: "password", form })}
      </div>
      <div class="field">
        <label for="app-key">Private key</label>
        <textarea
          id="app-key"
          name="private_key"
          rows="6"
          required
          spellcheck="false"
          autocomplete="off"
          placeholder="-----BEGIN RSA PRIVATE KEY-----"
          aria-describedby="app-key-hint${fault === undefined ? "" : " app-key-error"}"
          ${fault === undefined ? "" : html`aria-invalid="true"`}
        ></textarea>
        ${fault === undefined ? "" : html`<p class="error" id="app-key-error">The key ${fault}.</p>`}
        <p class="hint" id="app-key-hint">
          The PEM file that the code host made. Tried out before it is kept, stored encrypted.
        </p>
      </div>
      <div class="form-actions"><button class="primary">Register</button></div>
    </form>
  </section>`;
}

/** The last step here before the code host's page: a form that posts there. */
export function manifestPage({
  hostName,
  action,
  manifest,
}: ManifestForm & { readonly hostName: string }): Page {
  return {
    title: "Create an app",
    narrow: true,
    content: html`<div class="card stack">
      <h1>On to ${hostName}</h1>
      <p>There you confirm the app, and come back here.</p>
      <form class="form-actions" method="post" action="${action}">
        <input type="hidden" name="manifest" value="${manifest}" />
        <button class="primary">Create the app at ${hostName}</button>
        <a class="button" href="/admin/apps">Cancel</a>
      </form>
    </div>`,
  };
}

export function removeAppPage(app: AppRecord): Page {
  return {
    title: `Remove ${app.name}`,
    narrow: true,
    content: html`<div class="card stack">
      <h1>Remove ${app.name}?</h1>
      <p>
        Its installation tokens are revoked, and agent tokens that stand on it open nothing any more. At the
        code host the app stays as it is.
      </p>
      <form class="form-actions" method="post" action="/admin/apps/${app.id}/remove">
        <button class="danger">Remove</button>
        <a class="button" href="/admin/apps">Cancel</a>
      </form>
    </div>`,
  };
}

import { html, type Html } from "@devplat/web-kit";
import type { AppRecord, TokenPage, TokenRecord } from "../../storage/store.ts";
import { EVERYTHING, RESOURCES, scopeTexts } from "../../scopes/scopes.ts";
import {
  EMPTY_FORM,
  doneBanner,
  formMessage,
  selectField,
  textField,
  type FormState,
} from "../common/form.ts";
import { breakableName, formatAgo, formatTime } from "../common/format.ts";
import { listCard } from "../common/card.ts";
import type { Page } from "../common/layout.ts";
import { dataTable } from "../common/table.ts";

const SCOPES = [
  ["contents:read", "Read: clone and fetch"],
  ["contents:write", "Write: also push"],
] as const;
/** Resources besides the choice above; reading metadata is always included. */
export const OTHER_RESOURCES = RESOURCES.filter((resource) => !["contents", "metadata"].includes(resource));

/** Names of resources that differ from the name in the scope. */
const RESOURCE_NAMES: Readonly<Record<string, string>> = { repository_hooks: "webhooks" };

/** Name of a resource's field in the form. */
export function scopeField(resource: string): string {
  return `scope.${resource}`;
}

const LEVELS = [
  ["", "none"],
  ["read", "read"],
  ["write", "write"],
] as const;

const DURATIONS = [
  ["1h", "1 hour"],
  ["8h", "8 hours"],
  ["1d", "1 day"],
  ["7d", "7 days"],
] as const;

export interface TokensPageOptions {
  /** Apps that agent tokens can use; empty: only proxy tokens can be made. */
  readonly apps: readonly AppRecord[];
  /** Whether tokens of all users are shown. */
  readonly everybody: boolean;
  readonly tokens: TokenPage;
  /** Logins of the users who made the tokens, by user id. */
  readonly logins: ReadonlyMap<string, string>;
  /** Whether newer ones are on a page before. */
  readonly isLater: boolean;
  readonly baseUrl: string;
  readonly now: number;
  readonly done?: string | undefined;
  readonly form?: FormState;
  /** A token that this request created. It is not shown again. */
  readonly minted?: { readonly value: string; readonly repository: string } | undefined;
}

export function tokensPage(options: TokensPageOptions): Page {
  const { records, next } = options.tokens;
  const done = options.done === "revoked" ? "The token was revoked. It opens nothing any more." : undefined;
  return {
    title: "Tokens",
    section: "/admin/tokens",
    lead: html`A proxy token opens the repositories it names, through this service only. Your own code-host
    credential stays here.`,
    content: html`${doneBanner(done)}
    ${options.minted === undefined ? "" : mintedBanner(options.minted, options.baseUrl)}
    ${mintCard(options.form ?? EMPTY_FORM, options.apps)}
    ${listCard({
      id: "list-heading",
      title: options.everybody ? "Tokens of all users" : "Your tokens",
      aside: options.isLater
        ? html`<a class="button small" href="/admin/tokens">Newest</a>`
        : next === undefined
          ? html`<span class="badge">${records.length}</span>`
          : "",
      content: html`${records.length === 0 ? html`<p class="empty">No tokens yet.</p>` : table(options)}
      ${
        next === undefined
          ? ""
          : html`<p class="pager">
              <a class="button small" href="/admin/tokens?${new URLSearchParams({ cursor: next }).toString()}"
                >Older</a
              >
            </p>`
      }`,
    })}`,
  };
}

/** The commands do not hold the token: git would keep it in the clone's configuration, the shell in its history. */
function mintedBanner(minted: { value: string; repository: string }, baseUrl: string): Html {
  const url = new URL(baseUrl);
  const path = `${minted.repository === EVERYTHING ? "OWNER/NAME" : minted.repository}.git`;
  const helper = `credential.${url.origin}.helper`;
  return html`<div class="banner good stack" role="status">
    <p><strong>The token was created.</strong> Copy it now: it is not shown again.</p>
    <code class="secret" data-testid="token">${minted.value}</code>
    <p class="small">
      At a terminal: git asks for a password. Paste the token. Your credential helper keeps it for this
      repository.
    </p>
    <code class="secret" data-testid="clone-asked"
      >git clone -c credential.useHttpPath=true ${url.protocol}//x@${url.host}/${path}</code
    >
    <p class="small">In a script that has the token in the environment variable TOKEN:</p>
    <code class="secret" data-testid="clone-scripted"
      >git clone -c ${helper}= -c ${helper}='!f() { echo username=x; echo "password=$TOKEN"; }; f'
      ${url.origin}/${path}</code
    >
    <p class="small">git can also get tokens by itself: see <a href="/cli">Command line</a>.</p>
  </div>`;
}

function mintCard(form: FormState, apps: readonly AppRecord[]): Html {
  const standsFor = [
    ["", "your account (proxy token)"] as const,
    ...apps.map(({ id, name }) => [id, `${name} (agent token)`] as const),
  ];
  return html`<section class="card stack" aria-labelledby="mint-heading">
    <h2 id="mint-heading">Create a ${apps.length === 0 ? "proxy token" : "token"}</h2>
    ${formMessage(form)}
    <form class="stack" method="post" action="/admin/tokens">
      <div class="fields">
        ${textField({
          id: "mint-repository",
          name: "repository",
          label: "Repository",
          placeholder: "owner/name",
          hint: "Several by comma",
          required: true,
          form,
        })}
        ${selectField({ id: "mint-scopes", name: "scopes", label: "Access", choices: SCOPES, form })}
        ${apps.length === 0 ? "" : selectField({ id: "mint-app", name: "app", label: "Acts for", choices: standsFor, form })}
        ${selectField({ id: "mint-duration", name: "duration", label: "Lifetime", choices: DURATIONS, form })}
        ${textField({ id: "mint-description", name: "description", label: "Description", unit: "(optional)", form })}
      </div>
      ${moreRights(form)} ${limits(form)}
      <div class="form-actions">
        <button class="primary">Create token</button>
        <button formmethod="get" formaction="/admin/tokens/explain">What would it open?</button>
      </div>
    </form>
  </section>`;
}

/** All other resources, for tokens that also use the code host's API. Open when something in it is chosen. */
function moreRights(form: FormState): Html {
  const fault = form.faults["scopes"];
  const chosen = OTHER_RESOURCES.some((resource) => (form.values[scopeField(resource)] ?? "") !== "");
  return html`<details ${chosen || fault !== undefined ? html`open` : ""}>
    <summary>More rights, for the code host's API</summary>
    <fieldset class="scopes">
      <legend class="visually-hidden">Rights by resource</legend>
      ${OTHER_RESOURCES.map((resource) => {
        const field = scopeField(resource);
        return selectField({
          id: field,
          name: field,
          label: RESOURCE_NAMES[resource] ?? resource.replaceAll("_", " "),
          choices: LEVELS,
          form,
        });
      })}
    </fieldset>
  </details>`;
}

/** Addresses and rate of a token. Open when something in it is given. */
function limits(form: FormState): Html {
  const given = ["ip_allow", "requests_per_minute"].some(
    (name) => form.faults[name] !== undefined || (form.values[name] ?? "") !== "",
  );
  return html`<details ${given ? html`open` : ""}>
    <summary>Addresses and rate</summary>
    <div class="fields">
      ${textField({
        id: "mint-addresses",
        name: "ip_allow",
        label: "Addresses that may use it",
        unit: "(optional)",
        placeholder: "10.0.0.0/8, 2001:db8::1",
        hint: "Addresses and networks, by comma",
        form,
      })}
      ${textField({
        id: "mint-rate",
        name: "requests_per_minute",
        label: "Requests a minute",
        unit: "(optional)",
        inputMode: "numeric",
        form,
      })}
    </div>
  </details>`;
}

function table({ tokens, everybody, logins, now }: TokensPageOptions): Html {
  return dataTable({
    caption: "Tokens with their repositories, access and use",
    columns: ["Token", "Repositories", "Access", "Expires", "Uses", "Last use"],
    actions: true,
    rows: tokens.records.map((token) =>
      row(token, everybody ? (logins.get(token.userId) ?? "") : undefined, now),
    ),
  });
}

/** @param user login of who made it; undefined: not shown */
function row(token: TokenRecord, user: string | undefined, now: number): Html {
  const expired = token.expiresAt !== undefined && token.expiresAt <= now;
  const { metadata: _, ...scopes } = token.scopes;
  return html`<tr>
    <th scope="row">
      <span class="mono">${token.tokenStart}…</span>
      ${token.type === "agent" ? html`<span class="badge">agent</span>` : ""}
      ${user === undefined ? "" : html`<div class="small muted wrap">of ${user}</div>`}
      ${token.description === undefined ? "" : html`<div class="small muted wrap">${token.description}</div>`}
    </th>
    <td data-label="Repositories" class="wrap">
      <span
        >${token.repositories.map((name, index) => html`${index === 0 ? "" : ", "}${breakableName(name)}`)}</span
      >
    </td>
    <td data-label="Access" class="wrap">
      <div>
        ${scopeTexts(scopes).join(", ")}
        ${token.ipAllow.length === 0 ? "" : html`<div class="small muted">from ${token.ipAllow.join(", ")}</div>`}
        ${
          token.requestsPerMinute === undefined
            ? ""
            : html`<div class="small muted">${token.requestsPerMinute} requests a minute</div>`
        }
      </div>
    </td>
    <td data-label="Expires">
      ${
        expired
          ? html`<span class="status bad">Expired</span>`
          : html`<span class="nowrap"
              >${token.expiresAt === undefined ? "never" : formatTime(token.expiresAt)}</span
            >`
      }
    </td>
    <td data-label="Uses">${token.useCount}</td>
    <td data-label="Last use" class="nowrap">${formatAgo(token.lastUsedAt, now)}</td>
    <td>
      <div class="actions">
        <a
          class="button small"
          href="/admin/tokens/explain?token=${token.id}"
          aria-label="Explain ${token.tokenStart}"
          >Explain</a
        >
        <form method="post" action="/admin/tokens/${token.id}/revoke">
          <button class="small danger" aria-label="Revoke ${token.tokenStart}">Revoke</button>
        </form>
      </div>
    </td>
  </tr>`;
}

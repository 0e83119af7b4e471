import { html, type Html } from "@devplat/web-kit";
import type { Explanation } from "../../administration/tokens/explain.ts";
import { scopeTexts } from "../../scopes/scopes.ts";
import type { TokenRecord } from "../../storage/store.ts";
import { formMessage, selectField, textField, type FormState } from "../common/form.ts";
import { breakableName } from "../common/format.ts";
import { factList } from "../common/card.ts";
import type { Page } from "../common/layout.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

export interface ExplainPageOptions {
  /** The token to explain; undefined: scopes and a repository are given. */
  readonly token: TokenRecord | undefined;
  readonly form: FormState;
  /** Undefined: there is no request yet, or it is wrong. */
  readonly explanation: Explanation | undefined;
}

/** Says whether a token may make a request, and why, before it is made or handed out. */
export function explainPage(options: ExplainPageOptions): Page {
  const { token, form, explanation } = options;
  return {
    title: "What a token may do",
    section: "/admin/tokens",
    lead: html`A request is looked up in the tables of permissions. The code host is not asked.`,
    content: html`${explanation === undefined ? "" : resultOf(explanation)}
      <section class="card stack" aria-labelledby="explain-heading">
        <h2 id="explain-heading">
          ${token === undefined ? "A token with these rights" : html`Token <span class="mono">${token.tokenStart}…</span>`}
        </h2>
        ${formMessage(form)}
        <form class="stack" method="get" action="/admin/tokens/explain">
          ${token === undefined ? givenFields(form) : tokenFacts(token)}
          <div class="fields">
            ${selectField({ id: "explain-method", name: "method", label: "Method", choices: METHODS.map((each) => [each, each]), form })}
            ${textField({
              id: "explain-url",
              name: "url",
              label: "Request",
              placeholder: "/repos/owner/name/issues",
              hint: "A path of the API, or an address to clone or push",
              required: true,
              form,
            })}
          </div>
          <div class="form-actions">
            <button class="primary">Explain</button>
            <a class="button" href="/admin/tokens">To the tokens</a>
          </div>
        </form>
      </section>`,
  };
}

function givenFields(form: FormState): Html {
  return html`<div class="fields">
    ${textField({ id: "explain-repository", name: "repository", label: "Repository", placeholder: "owner/name", required: true, form })}
    ${textField({
      id: "explain-scopes",
      name: "scopes",
      label: "Scopes",
      placeholder: "contents:read,issues:write",
      required: true,
      form,
    })}
  </div>`;
}

function tokenFacts({ id, repositories, scopes }: TokenRecord): Html {
  return html`<input type="hidden" name="token" value="${id}" /> ${factList([
      [
        "Repositories",
        html`${repositories.map((name, index) => html`${index === 0 ? "" : ", "}${breakableName(name)}`)}`,
      ],
      ["Access", scopeTexts(scopes).join(", ")],
    ])}`;
}

function resultOf({ allowed, rule, needs, repositories, message }: Explanation): Html {
  return html`<section class="banner ${allowed ? "good" : "warn"} stack" role="status">
    <p><strong>${allowed ? "Allowed." : "Refused."}</strong> ${message}.</p>
    ${factList([
      ["Rule", html`<code>${rule}</code>`],
      needs.length === 0 ? undefined : ["Needs", needs.join(", ")],
      repositories.length === 0 ? undefined : ["For", repositories.join(", ")],
    ])}
  </section>`;
}

import { html, type Html } from "@devplat/web-kit";
import { formMessage, selectField, textField, type FormState } from "../common/form.ts";
import type { Page } from "../common/layout.ts";

export interface LoginPageOptions {
  /** Where to go on after the login. */
  readonly returnTo: string;
  /** Name of the code host, where logins by its accounts are set up. */
  readonly hostName: string | undefined;
  /** Development mode's form; undefined: not in development mode. */
  readonly form: FormState | undefined;
  /** Why the last try did not work. */
  readonly failure?: { readonly message: string; readonly hint: string | undefined } | undefined;
}

/** The configured ways to sign in, in the place of a page that needs it. */
export function loginPage(options: LoginPageOptions): Page {
  const { hostName, form, failure, returnTo } = options;
  const begin = `/auth/login?${new URLSearchParams({ return_to: returnTo }).toString()}`;
  return {
    title: "Sign in",
    narrow: true,
    content: html`<div class="card stack">
      <h1>Sign in</h1>
      ${
        failure === undefined
          ? ""
          : html`<p class="banner bad" role="alert">
              ${failure.message}.${failure.hint === undefined ? "" : ` ${failure.hint}`}
            </p>`
      }
      ${
        hostName === undefined
          ? ""
          : html`<p class="muted">
                You sign in at ${hostName}, and come back here. Your password stays there; what this service
                gets is a credential for your account, which stands behind the tokens that you make here.
              </p>
              <div class="form-actions">
                <a class="button primary" href="${begin}">Sign in with ${hostName}</a>
              </div>`
      }
      ${form === undefined ? "" : developmentForm(form, returnTo, hostName !== undefined)}
      ${hostName === undefined && form === undefined ? nothingSetUp() : ""}
    </div>`,
  };
}

function developmentForm(form: FormState, returnTo: string, isSecond: boolean): Html {
  return html`${isSecond ? html`<hr />` : ""}
    <p class="muted">Development mode: any user name is accepted, without a password.</p>
    ${formMessage(form)}
    <form class="stack" method="post" action="/admin/login">
      <input type="hidden" name="return_to" value="${returnTo}" />
      ${textField({ id: "username", name: "username", label: "User name", required: true, autocomplete: "username", autofocus: true, form })}
      ${selectField({
        id: "role",
        name: "role",
        label: "Role",
        choices: [
          ["admin", "admin"],
          ["user", "user"],
        ],
        form,
      })}
      ${textField({
        id: "host-token",
        name: "host_token",
        label: "Code-host token",
        unit: "(optional)",
        type: "password",
        hint: "Your proxy tokens use it. Stored encrypted.",
        form,
      })}
      <div class="form-actions"><button class="primary">Sign in</button></div>
    </form>`;
}

function nothingSetUp(): Html {
  return html`<p>No way to sign in is set up here.</p>
    <p class="muted">
      The administrator sets <code>host.client_id</code> and <code>host.client_secret</code> (an OAuth client
      of the code host).
    </p>`;
}

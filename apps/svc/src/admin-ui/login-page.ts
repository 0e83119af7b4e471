import { html, type Assets, type Html } from "@devplat/web-kit";
import { formMessage, textField, type FormState } from "./form.ts";
import { layout } from "./layout.ts";

export interface LoginPageOptions {
  readonly assets: Assets;
  readonly version: string;
  /** Undefined: not in development mode, so there is no form. */
  readonly form: FormState | undefined;
}

export function loginPage({ assets, version, form }: LoginPageOptions): Html {
  return layout({
    title: "Sign in",
    assets,
    version,
    narrow: true,
    content: form === undefined ? noForm() : developmentForm(form),
  });
}

function developmentForm(form: FormState): Html {
  const role = form.values["role"] ?? "admin";
  return html`<div class="card stack">
    <h1>Sign in</h1>
    <p class="muted">Development mode: any user name is accepted, without a password.</p>
    ${formMessage(form)}
    <form class="stack" method="post" action="/admin/login">
      ${textField({ id: "username", name: "username", label: "User name", required: true, autocomplete: "username", autofocus: true, form })}
      <div class="field">
        <label for="role">Role</label>
        <select id="role" name="role">
          <option value="admin" ${role === "admin" ? html`selected` : ""}>admin</option>
          <option value="user" ${role === "user" ? html`selected` : ""}>user</option>
        </select>
      </div>
      ${textField({
        id: "host-token",
        name: "host_token",
        label: "Code-host token",
        unit: "(optional)",
        type: "password",
        hint: "Stands behind the proxy tokens that you mint. Stored encrypted.",
        form,
      })}
      <div class="form-actions"><button class="primary">Sign in</button></div>
    </form>
  </div>`;
}

function noForm(): Html {
  return html`<div class="card stack">
    <h1>Sign in</h1>
    <p>Signing in with an account of the code host is not available in this version.</p>
    <p class="muted">In development mode (<code>SVC_DEV_MODE=true</code>) this page has a login form.</p>
  </div>`;
}

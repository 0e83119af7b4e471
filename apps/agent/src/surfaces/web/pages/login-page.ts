import { html, raw, type Assets, type Html } from "@devplat/web-kit";
import { BRAND } from "../../../brand.ts";
import type { LoginView } from "../state/web-login.ts";
import { plainPage } from "./layout.ts";

/** Waiting pages are loaded again after this time, in seconds: soon enough to follow, seldom enough to read. */
const REFRESH_SECONDS = 2;
const STARTING_REFRESH_SECONDS = 1;
/** The same where nothing but the daemon itself can bring the end, in seconds. */
const SLOW_REFRESH_SECONDS = 5;

export interface LoginPageModel {
  readonly view: LoginView;
  /** Reason why the action failed. */
  readonly refusal?: string;
  /** `web.login_text`, rendered. */
  readonly text: Html | undefined;
}

/** `/` before the sign-in to the store: the form of the configured method. Without scripts. */
export function loginPage(assets: Assets, { view, refusal, text }: LoginPageModel): Html {
  const { state, form, method } = view;
  const failure = refusal ?? (state?.kind === "failed" ? state.reason : undefined);
  const byItself = method === "mtls" && form === undefined && !view.borrowOnly;
  const bootstrap = method === "mtls" && form !== undefined;
  return plainPage(
    assets,
    "Sign in",
    html`<h1>Sign in</h1>
      ${failure === undefined ? "" : html`<p class="banner bad" role="alert">Not signed in: ${sentence(failure)}</p>`}
      ${text === undefined ? "" : html`<div class="prose">${text}</div>`}
      ${bootstrap ? html`<p>This host needs a client certificate. Sign in once to get it; from then on the daemon signs in by itself.</p>` : ""}
      ${byItself ? html`<p>The daemon signs in with its client certificate. There is nothing to do here.</p>` : ""}
      ${view.borrowOnly ? html`<p>This host borrows its token from a peer. Connect the host that lends it.</p>` : ""}
      ${form === undefined ? "" : formOf(form, view.username)} ${whyNot(view)}
      <p class="small muted">No file is changed until the daemon is signed in.</p>`,
    form === undefined ? { seconds: SLOW_REFRESH_SECONDS, url: "/" } : undefined,
  );
}

/** `/` while the daemon has just started and looks for a token: a form would ask for what may be there already. */
export function startingPage(assets: Assets): Html {
  const content = html`<h1>Starting</h1>
    <p role="status"><span class="status busy">The daemon looks for its token.</span></p>`;
  return plainPage(assets, "Starting", content, { seconds: STARTING_REFRESH_SECONDS, url: "/" });
}

/** `/` while the store does not respond about a known token: a sign-in is not possible, and may not be needed. */
export function storeUnreachablePage(assets: Assets, { reason }: Pick<LoginView, "reason">): Html {
  const content = html`<h1>Waiting for the store</h1>
    <p class="banner bad" role="alert">
      The secrets store cannot answer now. Files stay as they are.
      ${reason === null ? "" : html`<br /><span class="small wrap">The daemon says: ${sentence(reason)}</span>`}
    </p>
    <p role="status"><span class="status busy">The daemon tries again by itself.</span></p>
    <p class="hint">This page follows by itself.</p>`;
  return plainPage(assets, "Waiting for the store", content, { seconds: REFRESH_SECONDS, url: "/" });
}

/** `/login/ldap`: a login under way. Refreshes while something else is awaited, and waits for a passcode quietly. */
export function loginProgressPage(assets: Assets, view: LoginView): Html {
  const { state, method } = view;
  const cancel = html`<form method="post" action="/login/cancel">
    <button class="small" type="submit">Cancel</button>
  </form>`;
  if (state?.kind === "passcode") {
    const content = html`<h1>Passcode</h1>
      ${state.refused ? html`<p class="banner bad" role="alert">The passcode was not accepted. Try the next one.</p>` : ""}
      <form class="stack" method="post" action="/login/ldap/totp" autocomplete="off">
        <label class="field">
          <span class="label">One-time passcode (${state.method})</span>
          <input
            class="mono"
            name="passcode"
            required
            autofocus
            inputmode="numeric"
            autocomplete="one-time-code"
            spellcheck="false"
          />
        </label>
        <div class="form-actions"><button class="primary" type="submit">Continue</button></div>
      </form>
      ${cancel}`;
    return plainPage(assets, "Passcode", content);
  }
  const [title, words] =
    state?.kind === "waiting_push"
      ? ["Approve the login", `Approve it on your device (${state.methods.join(", ")}).`]
      : method === "mtls"
        ? ["Signing in", "The certificate of this host is being issued."]
        : ["Signing in", "The secrets store is being asked."];
  const content = html`<h1>${title}</h1>
    <p role="status"><span class="status busy">${words}</span></p>
    <p class="hint">This page follows by itself.</p>
    ${cancel}`;
  return plainPage(assets, title, content, { seconds: REFRESH_SECONDS, url: "/login/ldap" });
}

/** The end of the way over the identity provider. No redirect: with it the browser would not send a strict cookie. */
export function callbackPage(assets: Assets): Html {
  const content = html`<h1>Signing in</h1>
    <p>The identity provider has let you in. <a href="/">Continue</a></p>`;
  return plainPage(assets, "Signing in", content, { seconds: 0, url: "/" });
}

function formOf(form: NonNullable<LoginView["form"]>, username: string): Html {
  switch (form) {
    case "token":
      return html`<form class="stack" method="post" action="/login/token" autocomplete="off">
        <label class="field">
          <span class="label">Token of the secrets store</span>
          <input
            class="mono"
            type="password"
            name="token"
            required
            autofocus
            autocomplete="off"
            spellcheck="false"
          />
        </label>
        <div class="form-actions"><button class="primary" type="submit">Sign in</button></div>
        <p class="hint">
          It is kept in <code>~/${BRAND.tokenFile}</code>, readable by you alone. A token that is put there by
          hand is noticed too.
        </p>
      </form>`;
    case "ldap":
      return html`<form class="stack" method="post" action="/login/ldap">
        <label class="field">
          <span class="label">User name</span>
          <input
            name="username"
            value="${username}"
            required
            autocomplete="username"
            spellcheck="false"
            autocapitalize="off"
          />
        </label>
        <label class="field">
          <span class="label">Password</span>
          <input type="password" name="password" required autofocus autocomplete="current-password" />
        </label>
        <div class="form-actions"><button class="primary" type="submit">Sign in</button></div>
      </form>`;
    default:
      return html`<p class="form-actions">
        <a class="button primary" href="/auth/oidc/start">Sign in with your identity provider</a>
      </p>`;
  }
}

/** Reasons end with a full stop only if they have a hint. */
function sentence(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}

/** Open where there is nothing else to do than to read it. */
function whyNot({ reason, state, form }: LoginView): Html | string {
  if (reason === null || state?.kind === "failed") return "";
  return html`<details ${form === undefined ? raw("open") : ""}>
    <summary class="small">Why am I not signed in?</summary>
    <p class="small wrap">The daemon says: ${sentence(reason)}</p>
  </details>`;
}

import { html, type Assets, type Html } from "@devplat/web-kit";
import { BRAND } from "../../brand.ts";
import type { AgentStatus } from "../../status.ts";
import { plainPage } from "./layout.ts";

/**
 * `/` for somebody who is not signed in to the store. Without scripts, and without a word about store or user.
 *
 * @param text `web.login_text`, rendered
 */
export function loginPage(assets: Assets, status: Pick<AgentStatus, "auth">, text: Html | undefined): Html {
  return plainPage(
    assets,
    "Sign in",
    html`<h1>Sign in</h1>
      <p>The daemon runs, but it is not signed in to the secrets store. No file is changed until it is.</p>
      ${text === undefined ? "" : html`<div class="prose">${text}</div>`} ${howToSignIn(status.auth.method)}
      <p class="form-actions"><a class="button" href="/">Check again</a></p>`,
  );
}

function howToSignIn(method: string): Html {
  if (method.startsWith("mtls")) {
    return html`<p>
      It signs in by itself with its client certificate. <code>${BRAND.command} status</code> says what holds
      it up.
    </p>`;
  }
  if (method === "token") {
    return html`<p>
        Paste a store token into the token file, readable by you alone. The daemon notices it by itself.
      </p>
      <pre class="code" tabindex="0" aria-label="Command">(umask 077; cat &gt; ~/${BRAND.tokenFile})</pre>
      <p class="hint">Paste the token, press Enter, then Ctrl-D.</p>`;
  }
  return html`<p>Sign in on the command line:</p>
    <pre class="code" tabindex="0" aria-label="Command">${BRAND.command} login</pre>`;
}

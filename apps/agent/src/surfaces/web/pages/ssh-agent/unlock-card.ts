import { html, type Html } from "@devplat/web-kit";
import { AGENT_PAGE } from "./links.ts";

export interface UnlockModel {
  /** Comment of the key. */
  readonly comment: string;
  readonly fingerprint: string;
  /** Why the passphrase was refused. It is never sent back. */
  readonly fault?: string | undefined;
}

/** Asks for the passphrase of a key. It is outside of the live part, so that nothing replaces what is typed. */
export function unlockCard({ comment, fingerprint, fault }: UnlockModel): Html {
  return html`<form
    class="card stack"
    id="unlock"
    method="post"
    action="${AGENT_PAGE}"
    autocomplete="off"
    aria-labelledby="unlock-heading"
  >
    <input type="hidden" name="fingerprint" value="${fingerprint}" />
    <h2 class="wrap" id="unlock-heading">Unlock ${comment}</h2>
    <p class="small"><code class="fingerprint">${fingerprint}</code></p>
    ${passphraseInput("unlock-passphrase", fault)}
    <p class="hint">
      The key stays unlocked in memory only: until you sign out, the agent is locked, this host sleeps, or its
      lifetime is over.
    </p>
    <div class="form-actions">
      <button class="primary" type="submit" name="action" value="unlock">Unlock</button>
      <a class="button" href="${AGENT_PAGE}">Cancel</a>
    </div>
  </form>`;
}

/** An input that no browser fills in or keeps. */
export function passphraseInput(id: string, fault?: string): Html {
  return html`<div class="field">
    <label for="${id}">Passphrase</label>
    <input
      class="mono"
      id="${id}"
      type="password"
      name="passphrase"
      required
      autocomplete="off"
      spellcheck="false"
      autocapitalize="off"
      aria-invalid="${fault === undefined ? "false" : "true"}"
      aria-describedby="${id}-about"
    />
    <div id="${id}-about">${fault === undefined ? "" : html`<p class="error">${fault}</p>`}</div>
  </div>`;
}

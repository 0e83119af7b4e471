import { html, sentence, type Html } from "@devplat/web-kit";
import type { RemoteView } from "../../../../remote-view.ts";
import { timeText } from "../time-text.ts";
import { remoteUrl } from "./links.ts";

/** Tokens that the host has borrowed; never a token. */
export function lentTokensCard(remote: RemoteView, now: string): Html {
  const { host, tokens, offers } = remote;
  return html`<section class="card stack" aria-labelledby="tokens-heading">
    <div class="spread">
      <h2 id="tokens-heading">Tokens lent</h2>
      ${
        tokens.lent.length === 0
          ? ""
          : html`<form method="post" action="${remoteUrl(host)}">
              <button class="danger small" type="submit" name="action" value="revoke">Revoke now</button>
            </form>`
      }
    </div>
    ${tokens.problem === null ? "" : html`<p class="error wrap">${sentence(tokens.problem)}</p>`}
    ${
      tokens.lent.length === 0
        ? html`<p class="muted">
            ${
              offers.includes("token")
                ? "None. The host gets one when a program there asks."
                : "None. This remote does not offer tokens."
            }
          </p>`
        : tokens.lent.map((token) => lentToken(token, now))
    }
    ${
      tokens.added_policies.length === 0
        ? ""
        : html`<p class="small">
            The store adds these policies to every lent token:
            <code>${tokens.added_policies.join(", ")}</code>
          </p>`
    }
  </section>`;
}

function lentToken(token: RemoteView["tokens"]["lent"][number], now: string): Html {
  const { last_used_at: lastUsed } = token;
  return html`<dl class="facts">
    <div>
      <dt>Lent</dt>
      <dd>${timeText(token.created_at, now)}</dd>
    </div>
    <div>
      <dt>Ends</dt>
      <dd>${timeText(token.expires_at, now)}</dd>
    </div>
    <div>
      <dt>Last handed out</dt>
      <dd>${lastUsed === null ? html`<span class="muted">never</span>` : timeText(lastUsed, now)}</dd>
    </div>
    <div>
      <dt>Handed out</dt>
      <dd>${token.handouts === 1 ? "once" : `${token.handouts} times`}</dd>
    </div>
  </dl>`;
}

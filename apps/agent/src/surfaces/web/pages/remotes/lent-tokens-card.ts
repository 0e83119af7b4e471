import { html, sentence, type Html } from "@devplat/web-kit";
import type { AgentStatus } from "../../../../status.ts";
import { timeText } from "../time-text.ts";

/** Tokens that a host has borrowed; never a token. */
export type LentTokens = NonNullable<AgentStatus["peers"]>["tokens"];

/** For an answer to {@link consentQuestion} that comes late. */
export const LATE_ANSWER = "Nobody waits for this answer any more.";

/** A borrower of tokens. */
export interface LoanModel {
  readonly tokens: LentTokens;
  /** Whether it may ask for a token. */
  readonly isOffered: boolean;
  /** Address to which the forms are sent. */
  readonly action: string;
}

/** The question whether a token may be lent, while it waits. @param who the borrower */
export function consentQuestion({ tokens, action }: LoanModel, who: Html | string): Html | string {
  if (!tokens.asking) return "";
  return html`<form class="banner warn spread" method="post" action="${action}">
    <p><strong>${who}</strong> asks for a token of the secrets store. Did you expect that?</p>
    <div class="cluster">
      <button class="primary" type="submit" name="action" value="allow">Allow</button>
      <button type="submit" name="action" value="refuse">Refuse</button>
    </div>
  </form>`;
}

/** Tokens that are lent; never a token. */
export function lentTokensCard({ tokens, isOffered, action }: LoanModel, now: string): Html {
  return html`<section class="card stack" aria-labelledby="tokens-heading">
    <div class="spread">
      <h2 id="tokens-heading">Tokens lent</h2>
      ${
        tokens.lent.length === 0
          ? ""
          : html`<form method="post" action="${action}">
              <button class="danger small" type="submit" name="action" value="revoke">Revoke now</button>
            </form>`
      }
    </div>
    ${tokens.problem === null ? "" : html`<p class="error wrap">${sentence(tokens.problem)}</p>`}
    ${
      tokens.lent.length === 0
        ? html`<p class="muted">
            ${
              isOffered
                ? "None. The host gets one when a program there asks."
                : "None. No token is offered here."
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

function lentToken(token: LentTokens["lent"][number], now: string): Html {
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

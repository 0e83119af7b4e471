import type { Identity } from "../../identity/principal.ts";
import { html, type Html } from "@devplat/web-kit";
import type { AccountState } from "../../identity/accounts/accounts.ts";
import type { ListedSession } from "../../identity/login/sessions.ts";
import { doneBanner } from "../common/form.ts";
import { listCard } from "../common/card.ts";
import type { Page } from "../common/layout.ts";
import { sessionsTable } from "./sessions-table.ts";

export interface AccountPageOptions {
  readonly identity: Identity;
  readonly account: AccountState;
  /** Name of the code host. */
  readonly hostName: string;
  /** Whether accounts can be connected by a login. */
  readonly canConnect: boolean;
  readonly sessions: readonly ListedSession[];
  /** Number of valid tokens that were made with each session, by its id. */
  readonly tokens: ReadonlyMap<string, number>;
  readonly now: number;
  /** The action that was just carried out, in words. */
  readonly done?: string | undefined;
}

/** The connected code-host account and the sessions of a user. */
export function accountPage(options: AccountPageOptions): Page {
  const { identity, sessions, tokens, now } = options;
  return {
    title: "Account",
    section: "/ui",
    lead: html`You are signed in as ${identity.login}.`,
    content: html`${doneBanner(options.done)} ${connectionCard(options)}
    ${listCard({
      id: "sessions-heading",
      title: "Where you are signed in",
      aside: html`<span class="badge">${sessions.length}</span>`,
      content: sessionsTable({
        sessions,
        tokens,
        withUser: false,
        current: identity.sessionId,
        path: "/ui/sessions",
        now,
      }),
    })}`,
  };
}

function connectionCard({ account, hostName, canConnect }: AccountPageOptions): Html {
  const begin = `/auth/login?${new URLSearchParams({ return_to: "/ui" }).toString()}`;
  const connect = (label: string): Html | string =>
    canConnect
      ? html`<div class="form-actions"><a class="button primary" href="${begin}">${label}</a></div>`
      : "";
  const disconnect = html`<form class="form-actions" method="post" action="/ui/account/disconnect">
    <button class="danger">Disconnect</button>
  </form>`;
  return html`<section class="card stack" aria-labelledby="account-heading">
    <div class="spread">
      <h2 id="account-heading">Account at ${hostName}</h2>
      ${
        account === "connected"
          ? html`<span class="status good">Connected</span>`
          : account === "expired"
            ? html`<span class="status bad">Has to be connected again</span>`
            : html`<span class="status idle">Not connected</span>`
      }
    </div>
    ${
      account === "connected"
        ? html`<p class="muted">
              Your <a href="/admin/tokens">proxy tokens</a> use its credential, which is stored here
              encrypted. Without it they open only what anybody may read. If ${hostName} does not take it any
              more, renew it.
            </p>
            <div class="cluster">
              ${canConnect ? html`<a class="button" href="${begin}">Renew</a>` : ""} ${disconnect}
            </div>`
        : account === "expired"
          ? html`<p class="muted">
                ${hostName} does not take the stored credential any more, and your proxy tokens open nothing
                with it. Sign in again to renew it.
              </p>
              ${connect("Connect again")} ${disconnect}`
          : html`<p class="muted">
                Proxy tokens open only what anybody may read, until an account is connected.
              </p>
              ${connect(`Connect with ${hostName}`)}`
    }
  </section>`;
}

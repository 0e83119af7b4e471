import { html, livePartial, raw, type Assets, type Html } from "@devplat/web-kit";
import { BRAND } from "../../../../brand.ts";
import type { RemoteView } from "../../../../remote-view.ts";
import type { AgentStatus } from "../../../../status.ts";
import { NEW_REMOTE_FORM, type RemoteForm, type RemoteFormFaults } from "../../state/remote-form.ts";
import { dataCell, dataRow, dataTable } from "../data-table.ts";
import { sitePage } from "../layout.ts";
import { timeText } from "../time-text.ts";
import { fileNotice } from "./file-notice.ts";
import type { LentTokens } from "./lent-tokens-card.ts";
import { PEER_SOCKET_PAGE, REMOTES_PREFIX, remoteAddress, remoteUrl } from "./links.ts";
import { nextAttempt, remoteError, remoteState, stateSummary } from "./remote-state.ts";
import { addressInputs, hostInput, lendingInputs, routeInputs } from "./settings-inputs.ts";

/** Id of the part that the live stream replaces. */
const REMOTES_ID = "live-remotes";

/** The remotes as a page shows them. */
export interface RemotesModel {
  readonly remotes: readonly RemoteView[];
  /** Why ssh.yaml cannot be used now. */
  readonly fileProblem: string | undefined;
  /** The peer socket that the user forwards by hand; undefined while it is off. */
  readonly peers?: AgentStatus["peers"];
}

/** The form that adds a remote, as it was sent. */
export interface AddModel {
  readonly host: string;
  readonly form: RemoteForm;
  readonly faults: RemoteFormFaults;
  /** Why the remote was not added. */
  readonly refusal?: Html | undefined;
  /** The remote may be stored without a connection. */
  readonly mayForce?: boolean;
}

/** The form as it is at first. */
export const NOTHING_TYPED: AddModel = { host: "", form: NEW_REMOTE_FORM, faults: new Map() };

/** `/ui/remotes/`: all managed SSH forwards with their state, and a form that adds one. */
export function remotesPage(
  assets: Assets,
  status: AgentStatus,
  model: RemotesModel,
  { add, announcement }: { readonly add?: AddModel | undefined; readonly announcement?: string | undefined },
): Html {
  const content = html`<h1>Remotes</h1>
    <p class="muted">
      Accounts on other hosts that may use this daemon. It keeps an ssh connection to each, and offers
      programs there a token of the secrets store, the browser, notifications and the clipboard of this host.
    </p>
    ${addDetails(add)}
    <div class="stack" id="${REMOTES_ID}">${remotesContent(model, status.time)}</div>`;
  return sitePage(assets, status, "Remotes", content, {
    section: "Remotes",
    live: "remotes",
    stream: "ssh",
    announcement,
  });
}

/** The part of it that changes, for the live stream. */
export function remotesPartial(model: RemotesModel, now: string): Promise<string> {
  return livePartial(REMOTES_ID, remotesContent(model, now));
}

function remotesContent({ remotes, fileProblem, peers }: RemotesModel, now: string): Html {
  return html`${fileNotice(fileProblem)} ${remotes.length === 0 ? empty() : remotesTable(remotes, now)}
  ${peers === undefined ? "" : peerSocketLine(peers.tokens)}`;
}

function peerSocketLine({ lent, asking }: LentTokens): Html {
  return html`<p class="small">
    <a href="${PEER_SOCKET_PAGE}">Peer socket</a>, which you can forward by hand:
    ${lent.length === 0 ? "no token lent" : lentCount(lent.length)}
    ${asking ? html`<span class="badge warn">asks for a token</span>` : ""}
  </p>`;
}

/** The first thing that a new user reads. */
function empty(): Html {
  return html`<section class="card stack" aria-labelledby="remotes-empty">
    <h2 id="remotes-empty">No remotes yet</h2>
    <p>
      You work on another host over ssh, and its programs need your credentials or your browser? Add that
      host. Then, on that host:
    </p>
    <ul class="plain-list">
      <li>
        <code>${BRAND.command}</code> borrows a short-lived token from here, so you need not sign in there.
      </li>
      <li><code>${BRAND.command} browse</code> opens an address in the browser in front of you.</li>
      <li>
        <code>${BRAND.command} notify</code> and <code>${BRAND.command} clipboard</code> reach this desktop.
      </li>
    </ul>
    <p>The same from the command line:</p>
    <pre class="code" tabindex="0" aria-label="Command that adds a remote">${BRAND.command} ssh add HOST</pre>
  </section>`;
}

function remotesTable(remotes: readonly RemoteView[], now: string): Html {
  return html`<section class="card flush" aria-labelledby="remotes-heading">
    <div class="card-head">
      <h2 id="remotes-heading">Hosts</h2>
      <div class="cluster">${stateSummary(remotes)}</div>
    </div>
    ${dataTable(
      "remotes",
      "remotes-heading",
      ["Host", "State", "Since", "Offers"],
      remotes.map((remote) => row(remote, now)),
    )}
  </section>`;
}

function row(remote: RemoteView, now: string): Html {
  const { host, error, tokens, offers } = remote;
  const via = remote.proxy_jump === null ? "" : html` via ${remote.proxy_jump}`;
  const asks = html`<div>
    <span class="badge warn">asks for a token</span> <a href="${remoteUrl(host)}">Answer</a>
  </div>`;
  return dataRow(
    html`<a href="${remoteUrl(host)}">${host}</a>
      <div class="small muted">${remoteAddress(remote)}${via}</div>`,
    [
      dataCell(
        "State",
        html`${remoteState(remote)} ${tokens.asking ? asks : ""} ${error === null ? "" : remoteError(error)}
        ${nextAttempt(remote, now)}`,
        "wrap",
      ),
      dataCell("Since", timeText(remote.since, now), "nowrap"),
      dataCell(
        "Offers",
        html`${offers.length === 0 ? html`<span class="muted">nothing</span>` : offers.join(", ")}
        ${tokens.lent.length === 0 ? "" : html`<div class="small muted">${lentCount(tokens.lent.length)}</div>`}`,
      ),
    ],
  );
}

function lentCount(count: number): string {
  return count === 1 ? "1 token lent" : `${count} tokens lent`;
}

/** The button that reveals the form, and the form. It works without scripting. */
function addDetails(add: AddModel | undefined): Html {
  const model = add ?? NOTHING_TYPED;
  const { form, faults, refusal, mayForce } = model;
  const settings = { form, faults };
  const isPlain = JSON.stringify(form) === JSON.stringify(NEW_REMOTE_FORM);
  return html`<details class="reveal" ${add === undefined ? "" : raw("open")}>
    <summary class="button primary">Add a remote</summary>
    <section class="card stack" aria-label="New remote">
      ${refusal === undefined ? "" : html`<div class="banner bad" role="alert">${refusal}</div>`}
      <form class="stack" method="post" action="${REMOTES_PREFIX}">
        <div class="fields">${hostInput(model.host, faults)} ${addressInputs(settings)}</div>
        <details ${isPlain && faults.size === 0 ? "" : raw("open")}>
          <summary>Jump hosts, socket, offers and lending</summary>
          <div class="stack">
            <div class="fields wide">${routeInputs(settings)}</div>
            ${lendingInputs(settings)}
          </div>
        </details>
        <p class="hint">
          The daemon asks the host for its key, which you confirm, and connects once before it saves. This can
          take half a minute.
        </p>
        <div class="form-actions">
          <button class="primary" type="submit" name="action" value="add">Add</button>
          ${
            mayForce === true
              ? html`<button type="submit" name="action" value="force">Save without a connection</button>`
              : ""
          }
        </div>
      </form>
    </section>
  </details>`;
}

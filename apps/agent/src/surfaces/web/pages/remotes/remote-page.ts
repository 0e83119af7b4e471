import { html, livePartial, type Assets, type Html } from "@devplat/web-kit";
import { createHash } from "node:crypto";
import type { RemoteView } from "../../../../remote-view.ts";
import type { AgentStatus } from "../../../../status.ts";
import { formOf, packForm, type RemoteForm, type RemoteFormFaults } from "../../state/remote-form.ts";
import { sitePage } from "../layout.ts";
import { timeText } from "../time-text.ts";
import { fileNotice } from "./file-notice.ts";
import { hostKeyCard } from "./host-key-card.ts";
import { consentQuestion, lentTokensCard } from "./lent-tokens-card.ts";
import { REMOTES_PREFIX, remoteAddress, remoteUrl } from "./links.ts";
import { nextAttempt, remoteError, remoteState } from "./remote-state.ts";
import type { RemotesModel } from "./remotes-page.ts";
import { addressInputs, lendingInputs, routeInputs } from "./settings-inputs.ts";

/** Id of the part that the live stream replaces. */
const REMOTE_ID = "live-remote";
/** Id of the notice that the settings were changed after the page was loaded. */
const CHANGED_ID = "settings-changed";

export interface RemotePageModel {
  readonly remote: RemoteView;
  /** Why ssh.yaml cannot be used now. */
  readonly fileProblem: string | undefined;
  readonly announcement?: string | undefined;
  /** Why the last action failed. */
  readonly refusal?: Html | undefined;
  /** The settings that were sent and refused. */
  readonly refused?: { readonly form: RemoteForm; readonly faults: RemoteFormFaults } | undefined;
}

/** `/ui/remotes/<host>/`: one managed forward with its settings. */
export function remotePage(assets: Assets, status: AgentStatus, model: RemotePageModel): Html {
  const { remote, announcement, refusal } = model;
  const content = html`${refusal === undefined ? "" : html`<div class="banner bad" role="alert">${refusal}</div>`}
    <nav class="crumbs small" aria-label="Sections above"><a href="${REMOTES_PREFIX}">Remotes</a></nav>
    <h1 class="wrap">${remote.host}</h1>
    <div class="stack" id="${REMOTE_ID}">${liveContent(model, status.time)}</div>
    ${settingsCard(model)} ${deleteCard(remote)}`;
  return sitePage(assets, status, remote.host, content, {
    section: "Remotes",
    live: remoteTopic(remote.host),
    stream: "ssh",
    announcement,
  });
}

/** Live topic of a remote's page. */
export function remoteTopic(host: string): string {
  return `remote:${host}`;
}

/** The host whose page has a topic; undefined for other topics. */
export function topicHost(topic: string | undefined): string | undefined {
  return topic?.startsWith("remote:") === true ? topic.slice("remote:".length) : undefined;
}

/** The parts of a remote's page that change. */
export async function remotePartials(
  host: string,
  { remotes, fileProblem }: RemotesModel,
  now: string,
): Promise<string> {
  const remote = remotes.find((each) => each.host === host);
  if (remote === undefined) {
    return await livePartial(
      REMOTE_ID,
      html`<p class="banner warn">
        This remote has been removed. <a href="${REMOTES_PREFIX}">All remotes</a>
      </p>`,
    );
  }
  // The form may hold typed text, so it is not replaced. The notice is for a form with other settings.
  const other = `${CHANGED_ID}:not([data-settings=${settingsDigest(remote)}])`;
  const parts = [
    livePartial(REMOTE_ID, liveContent({ remote, fileProblem }, now)),
    livePartial(other, changedNotice(remote.host)),
  ];
  return (await Promise.all(parts)).join("");
}

function liveContent({ remote, fileProblem }: RemotePageModel, now: string): Html {
  const loan = {
    tokens: remote.tokens,
    isOffered: remote.offers.includes("token"),
    action: remoteUrl(remote.host),
  };
  return html`${fileNotice(fileProblem)} ${consentQuestion(loan, remote.host)}
    <section class="card stack" aria-label="State">${state(remote, now)}</section>
    ${lentTokensCard(loan, now)} ${hostKeyCard(remote)}`;
}

function state(remote: RemoteView, now: string): Html {
  const { enabled, error } = remote;
  const isDown = enabled && remote.state !== "connected";
  return html`<form class="spread" method="post" action="${remoteUrl(remote.host)}">
      <div class="cluster">
        ${remoteState(remote)} <span class="small muted">since ${timeText(remote.since, now)}</span>
      </div>
      <div class="cluster">
        ${
          remote.state === "host-key-error"
            ? html`<button class="primary" type="submit" name="action" value="repin">Check the key</button>`
            : ""
        }
        ${isDown ? html`<button type="submit" name="action" value="retry">Retry now</button>` : ""}
        <button
          class="switch"
          type="submit"
          role="switch"
          aria-checked="${enabled ? "true" : "false"}"
          name="action"
          value="${enabled ? "disable" : "enable"}"
        >
          Enabled
        </button>
      </div>
    </form>
    ${error === null ? "" : remoteError(error)} ${nextAttempt(remote, now)}
    <dl class="facts">
      <div>
        <dt>Address</dt>
        <dd>${remoteAddress(remote)}${remote.proxy_jump === null ? "" : html` via ${remote.proxy_jump}`}</dd>
      </div>
      <div>
        <dt>Remote socket</dt>
        <dd><code>${remote.remote_socket_expanded ?? remote.remote_socket}</code></dd>
      </div>
      <div>
        <dt>Reconnects</dt>
        <dd>${remote.reconnects}</dd>
      </div>
    </dl>
    ${
      remote.state === "connected" && !remote.proven
        ? html`<p class="hint">
            Not proven: the server denies the local forward by which the daemon looks whether the remote
            socket leads here.
          </p>`
        : ""
    }`;
}

function settingsCard({ remote, refused }: RemotePageModel): Html {
  const saved = formOf(remote);
  const settings = refused ?? { form: saved, faults: new Map() };
  return html`<section class="card stack" aria-labelledby="settings-heading">
    <h2 id="settings-heading">Settings</h2>
    <div class="notice-place" id="${CHANGED_ID}" data-settings="${settingsDigest(remote)}"></div>
    <form class="stack" method="post" action="${remoteUrl(remote.host)}">
      <input type="hidden" name="before" value="${packForm(saved)}" />
      <div class="fields">${addressInputs(settings)}</div>
      <div class="fields wide">${routeInputs(settings)}</div>
      ${lendingInputs(settings)}
      <div class="form-actions">
        <button class="primary" type="submit" name="action" value="save">Save</button>
      </div>
    </form>
  </section>`;
}

function changedNotice(host: string): Html {
  return html`<p class="banner warn" role="status">
    These settings have been changed elsewhere. <a href="${remoteUrl(host)}">Load them again</a>. A save
    changes only the settings that you change here.
  </p>`;
}

/** A name for the settings in a selector: it begins with a letter. */
function settingsDigest(remote: RemoteView): string {
  return `s${createHash("sha256")
    .update(packForm(formOf(remote)))
    .digest("hex")
    .slice(0, 16)}`;
}

function deleteCard({ host }: RemoteView): Html {
  return html`<details class="card">
    <summary>Delete this remote</summary>
    <form class="stack" method="post" action="${remoteUrl(host)}">
      <p>
        The connection is closed, tokens that are lent to the host are revoked, and the entry with its pinned
        key is removed from ssh.yaml. Nothing is removed on the host.
      </p>
      <div class="form-actions">
        <button class="danger" type="submit" name="action" value="delete">Delete ${host}</button>
      </div>
    </form>
  </details>`;
}

import { html, type Assets, type Html } from "@devplat/web-kit";
import type { AgentStatus } from "../../../../status.ts";
import type { OfferedKey } from "../../../forwards/host-keys.ts";
import { sitePage } from "../layout.ts";
import { REMOTES_PREFIX, remoteUrl } from "./links.ts";

/** A host whose key the user has confirmed in this form. */
export interface ConfirmedKey {
  readonly host: string;
  readonly fingerprint: string;
}

export interface KeyPageModel {
  /** The remote. */
  readonly host: string;
  readonly offered: OfferedKey;
  /** Keys of hosts before this one on the way. */
  readonly confirmed: readonly ConfirmedKey[];
  /** Fields that the form sends again. */
  readonly fields: Readonly<Record<string, string>>;
  /** The remote exists: its key is asked for again. */
  readonly isRepin: boolean;
}

/** The step before a host key is pinned: nothing is confirmed in advance. */
export function keyPage(assets: Assets, status: AgentStatus, model: KeyPageModel): Html {
  const { host, offered, confirmed, isRepin } = model;
  const back = isRepin ? remoteUrl(host) : REMOTES_PREFIX;
  const title = isRepin ? `Host key of ${host}` : `Add ${host}`;
  const content = html`<nav class="crumbs small" aria-label="Sections above">
      <a href="${REMOTES_PREFIX}">Remotes</a>
      ${isRepin ? html`<span aria-hidden="true">›</span> <a href="${back}">${host}</a>` : ""}
    </nav>
    <h1 class="wrap">${title}</h1>
    <form class="card stack" method="post" action="${back}" aria-labelledby="key-heading">
      ${Object.entries(model.fields).map(
        ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`,
      )}
      <h2 class="wrap" id="key-heading">Is this the key of ${offered.host}?</h2>
      <p>
        ${
          isItself(host, offered.host)
            ? "The host shows this key."
            : html`It is <strong>${host}</strong> under its name in your ssh configuration, or a jump host on
                the way. It shows this key.`
        }
        Compare the fingerprint with one that you got in another way, such as from the host's administrator.
      </p>
      <dl class="facts keys">
        <div>
          <dt>Type</dt>
          <dd>${offered.type}</dd>
        </div>
        <div class="wide">
          <dt>Fingerprint</dt>
          <dd><code class="fingerprint">${offered.fingerprint}</code></dd>
        </div>
        ${offered.pinned === undefined ? "" : pinned(offered.pinned, offered.fingerprint)}
        <div class="wide">
          <dt>Your known_hosts</dt>
          <dd>
            ${
              offered.known
                ? html`<span class="status good">has exactly this key</span>`
                : html`<span class="status warn">does not have this key</span>`
            }
          </dd>
        </div>
      </dl>
      ${confirmed.length === 0 ? "" : confirmedKeys(confirmed)}
      <label class="check"
        ><input type="checkbox" name="confirm" value="${offered.fingerprint}" required /> I have compared the
        fingerprint. It is the key of ${offered.host}.</label
      >
      <div class="form-actions">
        <button class="primary" type="submit">Trust this key</button>
        <a class="button" href="${back}">Cancel</a>
      </div>
    </form>`;
  return sitePage(assets, status, title, content, { section: "Remotes" });
}

/** Whether `host:port` is the remote by the name that the user gave. */
function isItself(host: string, keyName: string): boolean {
  const name = host.toLowerCase();
  return keyName.startsWith(name.includes(":") ? `[${name}]:` : `${name}:`);
}

function pinned(fingerprint: string, offered: string): Html {
  return html`<div class="wide">
    <dt>Pinned now</dt>
    <dd>
      <code class="fingerprint">${fingerprint}</code>
      ${
        fingerprint === offered
          ? html`<div class="status good">is the same</div>`
          : html`<div class="status bad">is another key</div>
              <p class="small">
                Either the host was set up again, or somebody is between this host and that one. Do not go on
                before you know which.
              </p>`
      }
    </dd>
  </div>`;
}

function confirmedKeys(confirmed: readonly ConfirmedKey[]): Html {
  return html`<div>
    <p class="small muted">You have confirmed before:</p>
    <ul class="plain-list small">
      ${confirmed.map(
        ({ host, fingerprint }) => html`<li class="wrap">${host} <code>${fingerprint}</code></li>`,
      )}
    </ul>
  </div>`;
}

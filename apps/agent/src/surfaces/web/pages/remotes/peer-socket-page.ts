import { html, livePartial, type Assets, type Html } from "@devplat/web-kit";
import type { AgentStatus } from "../../../../status.ts";
import { sitePage } from "../layout.ts";
import { consentQuestion, lentTokensCard } from "./lent-tokens-card.ts";
import { PEER_SOCKET_PAGE, REMOTES_PREFIX } from "./links.ts";

/** Id of the part that the live stream replaces. */
const PEER_SOCKET_ID = "live-peer-socket";

type Peers = NonNullable<AgentStatus["peers"]>;

export interface PeerSocketPageModel {
  readonly announcement?: string | undefined;
  /** Why the last action failed. */
  readonly refusal?: string | undefined;
}

/** `/ui/peer-socket/`: the peer socket that the user forwards by hand, with the tokens that are lent over it. */
export function peerSocketPage(
  assets: Assets,
  status: AgentStatus,
  { announcement, refusal }: PeerSocketPageModel,
): Html {
  const content = html`${refusal === undefined ? "" : html`<p class="banner bad" role="alert">${refusal}</p>`}
    <nav class="crumbs small" aria-label="Sections above"><a href="${REMOTES_PREFIX}">Remotes</a></nav>
    <h1>Peer socket</h1>
    <p class="muted">
      Hosts to which you forward this socket yourself, by <code>RemoteForward</code> or <code>ssh -R</code>.
    </p>
    <div class="stack" id="${PEER_SOCKET_ID}">${peerSocketContent(status)}</div>`;
  return sitePage(assets, status, "Peer socket", content, {
    section: "Remotes",
    live: "peer-socket",
    announcement,
  });
}

/** The part of it that changes, for the live stream. */
export function peerSocketPartial(status: AgentStatus): Promise<string> {
  return livePartial(PEER_SOCKET_ID, peerSocketContent(status));
}

function peerSocketContent({ peers, time }: AgentStatus): Html {
  if (peers === undefined) {
    return html`<section class="card">
      <p>The peer socket is off. <code>api.peer.enabled: true</code> in the configuration turns it on.</p>
    </section>`;
  }
  const loan = {
    tokens: peers.tokens,
    isOffered: peers.offers.includes("token"),
    action: PEER_SOCKET_PAGE,
  };
  return html`${consentQuestion(loan, "A host behind the peer socket")}
    <section class="card" aria-label="State">${facts(peers)}</section>
    ${lentTokensCard(loan, time)}`;
}

function facts({ socket, offers }: Peers): Html {
  return html`<dl class="facts">
    <div>
      <dt>Socket</dt>
      <dd><code>${socket}</code></dd>
    </div>
    <div>
      <dt>Offers</dt>
      <dd>${offers.length === 0 ? html`<span class="muted">nothing</span>` : offers.join(", ")}</dd>
    </div>
  </dl>`;
}

import { html, livePartial, sentence, type Assets, type Html } from "@devplat/web-kit";
import { BRAND } from "../../../../brand.ts";
import type { SshAgentStatus } from "../../../../ssh-agent-view.ts";
import type { AgentStatus } from "../../../../status.ts";
import { sitePage } from "../layout.ts";
import { timeText } from "../time-text.ts";
import { identityList } from "./identities.ts";
import { questionCard } from "./questions.ts";
import { AGENT_PAGE } from "./links.ts";
import { unlockCard, type UnlockModel } from "./unlock-card.ts";

/** Id of the part that the live stream replaces. */
const AGENT_ID = "live-agent";

export interface SshAgentPageModel {
  /** Undefined while the SSH agent is off. */
  readonly agent: SshAgentStatus | undefined;
  readonly announcement?: string | undefined;
  /** Why the last action failed. */
  readonly refusal?: string | undefined;
  /** The key whose passphrase is asked for. */
  readonly unlock?: UnlockModel | undefined;
}

/** `/ui/agent/`: keys of the SSH agent, and its questions to the user. */
export function sshAgentPage(assets: Assets, status: AgentStatus, model: SshAgentPageModel): Html {
  const { agent, announcement, refusal, unlock } = model;
  const content = html`${refusal === undefined ? "" : html`<p class="banner bad" role="alert">${refusal}</p>`}
    <h1>SSH agent</h1>
    <p class="muted">
      Offers ssh and git the keys that are kept in the secrets store. A private key is never written to a
      file.
    </p>
    ${unlock === undefined ? "" : unlockCard(unlock)}
    <div class="stack" id="${AGENT_ID}">${agentContent(agent, status.time)}</div>`;
  return sitePage(assets, status, "SSH agent", content, {
    section: "SSH agent",
    live: "agent",
    announcement,
  });
}

/** The part of it that changes, for the live stream. */
export function sshAgentPartial(agent: SshAgentStatus | undefined, now: string): Promise<string> {
  return livePartial(AGENT_ID, agentContent(agent, now));
}

function agentContent(agent: SshAgentStatus | undefined, now: string): Html {
  if (agent === undefined) return offCard();
  const { questions, sources, refusals } = agent;
  const isHidden = sources.some(({ identities }) => identities.some(({ state }) => state === "hidden"));
  return html`${questions.map((question) => questionCard(question, now))}
    ${
      agent.locked
        ? html`<p class="banner warn">
            The SSH agent is locked: it signs nothing. <code>ssh-add -X</code> unlocks it.
          </p>`
        : ""
    }
    <section class="card stack" aria-label="State">
      <div class="spread">
        ${stateMark(agent)}
        <form class="cluster" method="post" action="${AGENT_PAGE}">
          ${isHidden ? html`<button type="submit" name="action" value="show">Show hidden keys</button>` : ""}
          <button type="submit" name="action" value="refresh">Refresh</button>
        </form>
      </div>
      ${facts(agent)}
    </section>
    ${sources.length === 0 ? noSources() : sources.map((source) => identityList(source, now))}
    ${refusals.length === 0 ? "" : refusalCard(refusals, now)}`;
}

function stateMark({ locked, socket, socket_problems: problems }: SshAgentStatus): Html {
  if (problems.some((each) => each.socket === socket)) return html`<span class="status bad">Not open</span>`;
  return html`<span class="status ${locked ? "warn" : "good"}">${locked ? "Locked" : "Ready"}</span>`;
}

function facts({ socket, sockets, socket_problems: problems, withheld }: SshAgentStatus): Html {
  const others = sockets.filter((each) => each !== socket);
  return html`<dl class="facts">
    <div class="wide">
      <dt>Socket</dt>
      <dd>
        <code>${socket}</code>
        <div class="small muted">
          <code>eval "$(${BRAND.command} ssh-env)"</code> makes the programs of a shell use it.
        </div>
      </dd>
    </div>
    ${
      others.length === 0
        ? ""
        : html`<div class="wide">
            <dt>Other sockets</dt>
            <dd>${others.map((each) => html`<div><code>${each}</code></div>`)}</dd>
          </div>`
    }
    ${
      problems.length === 0
        ? ""
        : html`<div class="wide">
            <dt>Not open</dt>
            ${problems.map(
              ({ socket: path, reason }) =>
                html`<dd class="wrap"><code>${path}</code>: ${sentence(reason)}</dd>`,
            )}
            <dd class="small muted"><code>${BRAND.command} reload</code> tries again.</dd>
          </div>`
    }
    ${
      withheld === 0
        ? ""
        : html`<div class="wide">
            <dt>Withheld</dt>
            <dd>
              ${withheld} keys with <code>hosts</code> were not offered, because the client did not say to
              which host it connects. OpenSSH 8.9 and newer do.
            </dd>
          </div>`
    }
  </dl>`;
}

function noSources(): Html {
  return html`<section class="card">
    <p class="empty">
      No keys yet. An enrolment with the engine <code>ssh</code> makes one, and <code>agent.keys</code> in the
      configuration names others.
    </p>
  </section>`;
}

function refusalCard(refusals: SshAgentStatus["refusals"], now: string): Html {
  return html`<section class="card stack" aria-labelledby="refusals-heading">
    <h2 id="refusals-heading">Refused</h2>
    <ul class="plain-list">
      ${refusals.map(
        ({ at, fingerprint, reason }) =>
          html`<li class="wrap">
            ${timeText(at, now)} ${sentence(reason)}
            <div class="small"><code>${fingerprint}</code></div>
          </li>`,
      )}
    </ul>
  </section>`;
}

const EXAMPLE = `agent:
  enabled: true`;

/** How to turn it on. */
function offCard(): Html {
  return html`<section class="card stack" aria-labelledby="agent-off-heading">
    <h2 id="agent-off-heading">The SSH agent is off</h2>
    <p>
      Turned on, the daemon answers ssh and git with the keys that your enrolments have stored. A key can be
      limited to hosts, ask before each use, and end with your sign-in.
    </p>
    <p>Write this into the configuration. Then <code>${BRAND.command} reload</code> applies it:</p>
    <pre class="code" tabindex="0" aria-label="Configuration">${EXAMPLE}</pre>
    <p>Then make the programs of your shell use it:</p>
    <pre class="code" tabindex="0" aria-label="Command for the shell">eval "$(${BRAND.command} ssh-env)"</pre>
  </section>`;
}

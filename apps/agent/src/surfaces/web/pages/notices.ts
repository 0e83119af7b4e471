import { html, sentence, type Html } from "@devplat/web-kit";
import type { AgentStatus } from "../../../status.ts";
import { isOutstanding, needingUser } from "../state/setup-state.ts";
import { ENROLMENTS_PREFIX } from "./enrolments/links.ts";
import { PEER_SOCKET_PAGE, remoteUrl } from "./remotes/links.ts";
import { AGENT_PAGE } from "./ssh-agent/links.ts";
import { timeText } from "./time-text.ts";

/** Notice of every page while files cannot follow the store; empty otherwise. */
export function storeNotice({ store, sync, time }: AgentStatus): Html | string {
  const lastCycle = sync.last_cycle_at;
  const since = lastCycle === null ? "" : html` since ${timeText(lastCycle, time)}`;
  if (!store.reachable) {
    return html`<p class="banner bad">
      The secrets store ${lastCycle === null ? "does not answer" : html`has not answered${since}`}. Files stay
      as they are.
      ${store.last_error === null ? "" : html`<br /><span class="small">${sentence(store.last_error)}</span>`}
    </p>`;
  }
  if (sync.stale_since === null) return "";
  return html`<p class="banner warn">No cycle has been completed${since}. Files stay as they are.</p>`;
}

/** Other notices for the user, at the top of the page. */
export function notices(status: AgentStatus): Html {
  const { config } = status;
  return html`${
    config.problems.length === 0
      ? ""
      : html`<div class="banner bad">
          The new configuration is not used because it has faults; the one before stays in force.
          ${list(config.problems)}
        </div>`
  }
  ${
    config.reload_needed.length === 0
      ? ""
      : html`<div class="banner warn">
          These changed settings take effect with the next start of the daemon. ${list(config.reload_needed)}
        </div>`
  }
  ${waiting(status)} ${asking(status)}`;
}

/** Questions of remote hosts and of the SSH agent, which wait for a short time. */
function asking({ remotes, peers, ssh_agent: sshAgent }: AgentStatus): Html {
  const pages = [
    ...remotes.flatMap(({ host, tokens }) => (tokens.asking ? [[host, remoteUrl(host)] as const] : [])),
    ...(peers?.tokens.asking === true ? [["A host behind the peer socket", PEER_SOCKET_PAGE] as const] : []),
    ...(sshAgent !== undefined && sshAgent.questions.length > 0
      ? [["The SSH agent", AGENT_PAGE] as const]
      : []),
  ];
  return html`${pages.map(
    ([who, url]) =>
      html`<p class="banner warn">${who} waits for your answer. <a href="${url}">Answer</a></p>`,
  )}`;
}

/** Enrolments that wait for the user, after the wizard was left. */
function waiting({ enrolments }: AgentStatus): Html | string {
  const count = needingUser(enrolments).filter(isOutstanding).length;
  if (count === 0) return "";
  const words = count === 1 ? "One enrolment waits for you" : `${count} enrolments wait for you`;
  return html`<p class="banner">${words}. <a href="${ENROLMENTS_PREFIX}">Show</a></p>`;
}

function list(items: readonly string[]): Html {
  return html`<ul>
    ${items.map((item) => html`<li class="small wrap">${item}</li>`)}
  </ul>`;
}

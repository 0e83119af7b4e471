import { html, sentence, type Html } from "@devplat/web-kit";
import type { RemoteState, RemoteView } from "../../../../remote-view.ts";
import { timeText } from "../time-text.ts";

/** Colours of the mission: green, orange, red, grey. */
const STATE: Readonly<Record<RemoteState, { readonly mark: string; readonly word: string }>> = {
  connected: { mark: "good", word: "Connected" },
  connecting: { mark: "warn", word: "Connecting" },
  reconnecting: { mark: "warn", word: "Reconnecting" },
  offline: { mark: "bad", word: "Offline" },
  "authentication-error": { mark: "bad", word: "Authentication error" },
  "host-key-error": { mark: "bad", word: "Host key error" },
  disabled: { mark: "idle", word: "Disabled" },
};

/** The state of a remote: a dot, and the same in words. */
export function remoteState({ state, proven }: RemoteView): Html {
  const { mark, word } = STATE[state];
  const isContested = state === "connected" && !proven;
  return html`<span class="status ${mark}">${word}</span>${
      isContested ? html` <span class="small">(not proven)</span>` : ""
    }`;
}

/** Why a forward is not up, with its class and the action to take. The message may quote the server. */
export function remoteError(error: NonNullable<RemoteView["error"]>): Html {
  return html`<div>
    <div class="error wrap"><code>${error.class}</code> ${error.message}</div>
    ${error.advice === "" ? "" : html`<div class="small wrap">${sentence(error.advice)}</div>`}
  </div>`;
}

/** When the daemon tries again by itself; empty while it does not wait. */
export function nextAttempt({ next_attempt_at: next }: RemoteView, now: string): Html | string {
  return next === null ? "" : html`<div class="small muted">Next attempt at ${timeText(next, now)}</div>`;
}

/** How many remotes are in each colour. */
export function stateSummary(remotes: readonly RemoteView[]): Html[] {
  const counts = Map.groupBy(remotes, ({ state }) => STATE[state].mark);
  const words = { good: "connected", warn: "connecting", bad: "not connected", idle: "disabled" };
  return Object.entries(words).flatMap(([mark, word]) => {
    const count = counts.get(mark)?.length ?? 0;
    return count === 0 ? [] : [html`<span class="badge ${mark}">${count} ${word}</span>`];
  });
}

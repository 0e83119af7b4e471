import { html, livePartial, type Assets, type Html } from "@devplat/web-kit";
import type { AgentStatus, RuleView } from "../../../status.ts";
import { sitePage } from "./layout.ts";
import { mountCard } from "./mount/mount-card.ts";
import { notices } from "./notices.ts";
import { rulesTable } from "./rules-table.ts";
import { timeText } from "./time-text.ts";
import { volumesCard } from "./volumes-card.ts";

/** Id of the part that the live stream replaces. */
const LIVE_CONTENT_ID = "live-content";

/**
 * `/ui/`: the state of the daemon and of its rules.
 *
 * @param text `web.secret_view_text`, rendered
 */
export function indexPage(
  assets: Assets,
  status: AgentStatus,
  rules: readonly RuleView[],
  text: Html | undefined,
  announcement?: string,
): Html {
  const still =
    text === undefined ? "" : html`<section class="card prose" aria-label="Notes">${text}</section>`;
  return sitePage(
    assets,
    status,
    "Overview",
    html`<div class="stack" id="${LIVE_CONTENT_ID}">${content(status, rules)}</div>
      ${still}`,
    { section: "Overview", announcement, live: "overview" },
  );
}

/** The part that changes, for the live stream. */
export function overviewPartial(status: AgentStatus, rules: readonly RuleView[]): Promise<string> {
  return livePartial(LIVE_CONTENT_ID, content(status, rules));
}

function content(status: AgentStatus, rules: readonly RuleView[]): Html {
  return html`${notices(status)}
    <h1>Overview</h1>
    <section class="card" aria-label="State">${facts(status)}</section>
    ${rulesTable(rules, status.time)} ${mountCard(status.fuse)} ${volumesCard(status.docker)}`;
}

function facts(status: AgentStatus): Html {
  const { auth, store, sync, time } = status;
  const until = auth.expires_at === null ? "" : html`, until ${timeText(auth.expires_at, time)}`;
  const borrowed = auth.borrowed_from === undefined ? "" : html`, from ${auth.borrowed_from}`;
  return html`<dl class="facts">
    <div>
      <dt>Signed in</dt>
      <dd>${status.username} <span class="muted">(${authText(auth)}${borrowed}${until})</span></dd>
    </div>
    <div>
      <dt>Secrets below</dt>
      <dd><code>${store.kv_mount}/${store.user_prefix}${status.username}/</code></dd>
    </div>
    <div>
      <dt>Changes in the store</dt>
      <dd>${sync.events === "connected" ? "noticed immediately" : "looked for in each cycle"}</dd>
    </div>
    <div>
      <dt>Next cycle</dt>
      <dd>${nextCycle(status)}</dd>
    </div>
  </dl>`;
}

function nextCycle(status: AgentStatus): Html | string {
  const { state, next_cycle_at: next } = status.sync;
  if (state === "running") return "running now";
  return next === null ? "not planned" : timeText(next, status.time);
}

function authText(auth: AgentStatus["auth"]): string {
  switch (auth.source) {
    case "environment":
      return "token from AGENT_TOKEN";
    case "file":
      return "token file";
    case "embedded":
      return "embedded store";
    case "peer":
      return "borrowed token";
    default:
      return auth.method;
  }
}

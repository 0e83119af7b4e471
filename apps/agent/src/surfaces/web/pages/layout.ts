import { html, page, raw, type Assets, type Html } from "@devplat/web-kit";
import { BRAND } from "../../../brand.ts";
import { liveStatus } from "../../http-api/status/status-document.ts";
import type { AgentStatus } from "../../../status.ts";
import { canSignOut } from "../state/sign-out-rule.ts";
import { storeNotice } from "./notices.ts";
import { timeText } from "./time-text.ts";

/** Adds the files that only the daemon's pages use. */
export function addPageAssets(assets: Assets): void {
  assets.add("icon.svg", new URL("icon.svg", import.meta.url));
  assets.add("live.js", new URL("live.js", import.meta.url));
  assets.add("site.css", new URL("site.css", import.meta.url));
  assets.add("secrets.js", new URL("secrets.js", import.meta.url));
}

/** The sections of the main site, in the order of the header. */
const SECTIONS = [
  ["Overview", "/ui/"],
  ["Secrets", "/ui/secrets/"],
  ["Enrolments", "/ui/enrolments/"],
  ["Rules", "/ui/rules/"],
  ["Remotes", "/ui/remotes/"],
  ["SSH agent", "/ui/agent/"],
  ["Config", "/ui/config/"],
] as const;
export type Section = (typeof SECTIONS)[number][0];

/** The section that a path of the main site belongs to. */
export function sectionOf(path: string): Section {
  return SECTIONS.findLast(([, prefix]) => path.startsWith(prefix))?.[0] ?? "Overview";
}

/** Id of the line that says what an action without a new page has done. */
export const ANNOUNCE_ID = "announce";

export interface SitePageOptions {
  readonly section: Section;
  /** Live topic of the page besides the header; see live-topics.ts. Default: none. */
  readonly live?: string;
  /** The stream with that topic. Default: that of the daemon's state. */
  readonly stream?: LiveStream;
  /** Message of the action before; shown once. */
  readonly announcement?: Html | string | undefined;
  /** Leads elsewhere after a time, where scripting is off. */
  readonly refresh?: { readonly seconds: number; readonly url: string } | undefined;
}

/** Id of the header's part that the live stream replaces. */
export const LIVE_STATE_ID = "live-state";

/** Id of the place of {@link storeNotice}, which the live stream replaces. */
export const LIVE_NOTICE_ID = "live-notice";

/** The place of what a page says of the store above its content. */
export function liveNotice(status: AgentStatus): Html {
  return html`<div class="live-notice" id="${LIVE_NOTICE_ID}">${storeNotice(status)}</div>`;
}

/** A page of the main site: header with the live state, and the content. Works without scripts; with them it is live. */
export function sitePage(
  assets: Assets,
  status: AgentStatus,
  title: string,
  content: Html,
  options: SitePageOptions,
): Html {
  const { section, announcement, refresh, live = "header", stream } = options;
  const body = html`<a class="skip" href="#content">Skip to the content</a>
    <header class="topbar">
      <a class="brand" href="/ui/"
        ><img src="${assets.path("icon.svg")}" alt="" />${BRAND.command}
        <span class="version">${status.version}</span></a
      >
      <div class="actions below" id="${LIVE_STATE_ID}" role="status">${liveState(status)}</div>
      ${copyToken(status)}
      <form method="post" action="/ui/sync">
        <button class="primary small" type="submit">Sync Now</button>
      </form>
      <div class="nav-row">
        <nav class="nav" aria-label="Sections">
          ${SECTIONS.map(
            ([name, href]) =>
              html`<a href="${href}" ${name === section ? raw('aria-current="page"') : ""}>${name}</a>`,
          )}
        </nav>
        ${signOut(status)}
      </div>
    </header>
    <main class="page" id="content">
      ${liveLost("/ui/")} ${liveNotice(status)}
      <p class="announce" id="${ANNOUNCE_ID}" role="status">${announcement ?? ""}</p>
      ${content}
    </main>
    ${liveStream(live, stream)}`;
  return page({
    title: `${title} · ${BRAND.command}`,
    assets,
    body,
    icon: "icon.svg",
    styles: ["site.css"],
    scripts: ["live.js", "secrets.js"],
    ...(refresh !== undefined && { refresh: { ...refresh, unscripted: true } }),
  });
}

/** The browser never gets the token: the daemon puts it on the clipboard. The embedded store has none. */
function copyToken(status: AgentStatus): Html | string {
  if (status.auth.source === "embedded") return "";
  return html`<form
    method="post"
    action="/ui/copy-token"
    hx-post="/ui/copy-token"
    hx-target="#${ANNOUNCE_ID}"
  >
    <button class="small" type="submit">Copy token</button>
  </form>`;
}

/** Not offered where signing out has no effect (environment, certificate, peer, embedded store). */
function signOut(status: AgentStatus): Html | string {
  if (!canSignOut(status)) return "";
  return html`<form method="post" action="/ui/sign-out">
    <button class="small quiet" type="submit">Sign out</button>
  </form>`;
}

/** Addresses of the live streams: of the daemon's state, and of managed SSH forwards. */
const STREAMS = { state: "/ui/sse", ssh: "/ui/sse/ssh" } as const;
export type LiveStream = keyof typeof STREAMS;

/** The element that connects a page with a live stream, for one topic. */
export function liveStream(topic: string, stream: LiveStream = "state"): Html {
  const path = `${STREAMS[stream]}?show=${encodeURIComponent(topic)}`;
  return html`<div hx-sse:connect="${path}" hx-swap="none"></div>`;
}

/** Shown by a script when the page no longer follows the daemon. */
export function liveLost(href: string): Html {
  return html`<p class="banner warn" id="live-lost" role="alert" hidden>
    This page is no longer live: the daemon does not respond, or you are signed out.
    <a href="${href}">Load it again</a>
  </p>`;
}

/** The header's live part: connection, store, time of the last completed cycle. */
export function liveState(status: AgentStatus): Html {
  const { updated_at: updatedAt } = liveStatus(status);
  return html`${connection(status)} ${storeLink(status)}
    <span class="small muted nowrap"
      >${updatedAt === null ? "Not synced yet" : html`Updated ${timeText(updatedAt, status.time)}`}</span
    >`;
}

function connection(status: AgentStatus): Html {
  if (!status.authenticated) return html`<span class="status bad">Signed out</span> <a href="/">Sign in</a>`;
  // A cycle waits long for a store that hangs.
  if (!status.store.reachable) return html`<span class="status bad">Store unreachable</span>`;
  if (status.sync.state === "running") return html`<span class="status busy">Syncing</span>`;
  if (status.sync.state === "stale") return html`<span class="status warn">Stale</span>`;
  return html`<span class="status good">Connected</span>`;
}

function storeLink(status: AgentStatus): Html {
  const { driver, address } = status.store;
  if (driver === "embedded") return html`<span class="small">Embedded store</span>`;
  const url = URL.parse(address);
  // The address comes from a configuration: only these two schemes are safe to offer as a link.
  if (url?.protocol !== "https:" && url?.protocol !== "http:")
    return html`<span class="small wrap">${address}</span>`;
  return html`<a class="small" href="${url.origin}" rel="noreferrer" target="_blank">${url.host}</a>`;
}

/** A page with typed text and without the site's header, for a user who is no longer signed in. */
export function plainDraftPage(assets: Assets, title: string, content: Html): Html {
  return page({
    title: `${title} · ${BRAND.command}`,
    assets,
    body: plainBody(assets, content, "page setup"),
    icon: "icon.svg",
    styles: ["site.css"],
    scripts: ["secrets.js"],
  });
}

/** A page without scripts and without the site's header: sign-in, errors. */
export function plainPage(
  assets: Assets,
  title: string,
  content: Html,
  refresh?: { seconds: number; url: string },
): Html {
  const body = plainBody(assets, content, "page narrow");
  const base = { title: `${title} · ${BRAND.command}`, assets, body, icon: "icon.svg" };
  return page(refresh === undefined ? base : { ...base, refresh });
}

function plainBody(assets: Assets, content: Html, classes: string): Html {
  return html`<main class="${classes}">
    <p class="brand"><img src="${assets.path("icon.svg")}" alt="" />${BRAND.command}</p>
    <div class="card stack">${content}</div>
  </main>`;
}

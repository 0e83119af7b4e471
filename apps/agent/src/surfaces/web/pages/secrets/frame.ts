import { html, type Assets, type Html } from "@devplat/web-kit";
import type { AgentStatus } from "../../../../status.ts";
import { folderOf, lastName } from "../../../../secrets/url-path.ts";
import { sitePage } from "../layout.ts";
import { SECRETS_PREFIX, secretUrl } from "./links.ts";
import { sidebar, type SidebarModel } from "./sidebar.ts";

/** Parts of every page of secrets. */
export interface SecretsFrame {
  readonly assets: Assets;
  readonly status: AgentStatus;
  readonly sidebar: SidebarModel;
  /** `web.secret_view_text`, rendered. */
  readonly text: Html | undefined;
  readonly announcement?: string | undefined;
  /** Reason why the action failed. */
  readonly refusal?: string | undefined;
}

/** A page of secrets: the sidebar and the content. */
export function secretsPage(
  frame: SecretsFrame,
  title: string,
  content: Html,
  refresh?: { readonly seconds: number; readonly url: string },
): Html {
  const { assets, status, refusal, text, announcement } = frame;
  const body = html`<div class="split">
    ${sidebar(frame.sidebar)}
    <div class="stack">
      ${refusal === undefined ? "" : html`<p class="banner bad" role="alert">${refusal}</p>`} ${content}
      ${text === undefined ? "" : html`<section class="card prose" aria-label="Notes">${text}</section>`}
    </div>
  </div>`;
  return sitePage(assets, status, title, body, { section: "Secrets", announcement, refresh });
}

/** Path of a secret or folder: a link for every folder above it. */
export function crumbs(path: string): Html {
  const folders: string[] = [];
  for (let folder = folderOf(path); folder !== ""; folder = folderOf(folder)) folders.unshift(folder);
  return html`<nav class="crumbs small" aria-label="Folders">
    <a href="${SECRETS_PREFIX}">Secrets</a>
    ${folders.map((folder) => html`<span aria-hidden="true">›</span> <a href="${secretUrl(folder)}">${lastName(folder)}</a>`)}
  </nav>`;
}

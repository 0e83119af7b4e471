import type { Identity } from "../../identity/principal.ts";
import { html, page, type Assets, type Html } from "@devplat/web-kit";

/** Adds the files that only the administration's pages use. */
export function addPageAssets(assets: Assets): void {
  assets.add("svc.css", new URL("svc.css", import.meta.url));
  assets.add("mark.svg", new URL("mark.svg", import.meta.url));
}

/** The sections, in the order of the navigation. */
const SECTIONS = [
  { path: "/admin", name: "Dashboard", adminOnly: true },
  { path: "/admin/repositories", name: "Cached Repositories", adminOnly: true },
  { path: "/admin/tokens", name: "Tokens", adminOnly: false },
  { path: "/admin/apps", name: "Apps", adminOnly: true },
  { path: "/admin/users", name: "Users", adminOnly: true },
  { path: "/admin/audit", name: "Audit", adminOnly: true },
  { path: "/admin/configuration", name: "Configuration", adminOnly: true },
  { path: "/ui", name: "Account", adminOnly: false },
] as const;
export type SectionPath = (typeof SECTIONS)[number]["path"];

/** A page without the frame that all pages have. */
export interface Page {
  readonly title: string;
  /** Introduction below a heading with the title; undefined: the content has the heading. */
  readonly lead?: Html;
  readonly content: Html;
  /** The section that is shown. */
  readonly section?: SectionPath;
  /** Address of the event stream that keeps parts of the page current; undefined: a page without scripts. */
  readonly live?: string;
  /** For a form alone. */
  readonly narrow?: boolean;
}

/** Parts of the frame that do not depend on the page. */
export interface Frame {
  readonly assets: Assets;
  readonly version: string;
}

/** A page with its header and navigation. @param identity undefined: nobody is signed in */
export function layout(shown: Page, { assets, version }: Frame, identity: Identity | undefined): Html {
  const { title, lead, content, section, live, narrow } = shown;
  const sections = SECTIONS.filter(({ adminOnly }) => !adminOnly || identity?.role === "admin");
  return page({
    title: `${title} – svc`,
    assets,
    styles: ["svc.css"],
    icon: "mark.svg",
    ...(live === undefined ? {} : { scripts: [] }),
    body: html`<a class="skip" href="#content">Skip to content</a>
      <header class="topbar">
        <a class="brand" href="/admin">
          <img class="mark" src="${assets.path("mark.svg")}" alt="" width="26" height="26" />
          svc <span class="version">${version}</span>
        </a>
        ${
          identity === undefined
            ? ""
            : html`<nav class="nav below" aria-label="Sections">
                  ${sections.map(
                    ({ path, name }) =>
                      html`<a href="${path}" ${path === section ? html`aria-current="page"` : ""}
                        >${name}</a
                      >`,
                  )}
                </nav>
                <div class="actions">
                  <span class="who">${identity.login} <span class="badge">${identity.role}</span></span>
                  <form method="post" action="/admin/logout"><button class="small">Sign out</button></form>
                </div>`
        }
      </header>
      <main class="page ${narrow === true ? "narrow" : ""}" id="content" tabindex="-1">
        ${
          lead === undefined
            ? ""
            : html`<div>
                <h1>${title}</h1>
                <p class="lead">${lead}</p>
              </div>`
        }
        ${content}
      </main>
      <footer class="footer"><a href="/docs">API</a> · <a href="/cli">Command line</a></footer>
      ${live === undefined ? "" : html`<div hx-sse:connect="${live}" hx-swap="none"></div>`}`,
  });
}

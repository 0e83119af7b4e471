import type { Assets } from "./assets.ts";
import { html, type HtmlEscapedString } from "./html.ts";

export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

/** htmx without what the policy forbids (its style element) and without what we do not use (page snapshots). */
const HTMX_CONFIG = JSON.stringify({ includeIndicatorCSS: false, history: false, extensions: "sse" });

export interface PageOptions {
  readonly title: string;
  readonly assets: Assets;
  /** What goes into `<body>`. */
  readonly body: Html;
  /** Names of style sheets after `kit.css`. */
  readonly styles?: readonly string[];
  /** Names of scripts after htmx and its SSE extension, run before the body is there; undefined: no script at all. */
  readonly scripts?: readonly string[];
  /** Name of the svg asset that is the page's icon. */
  readonly icon?: string;
  /**
   * Loads the page anew, or another one: for waiting states of pages without scripts, and with `unscripted` only where
   * scripting is off and a script of the page cannot do better.
   */
  readonly refresh?: { readonly seconds: number; readonly url?: string; readonly unscripted?: boolean };
}

/** A whole HTML document. Everything interpolated is escaped by the template. */
export function page(options: PageOptions): Html {
  const { assets, refresh } = options;
  // Not deferred: a deferred htmx starts by a timer, which may fire before the script of its extension has come.
  const scripts = options.scripts === undefined ? [] : ["htmx.js", "hx-sse.js", ...options.scripts];
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${options.title}</title>
        ${
          options.icon === undefined
            ? ""
            : html`<link rel="icon" type="image/svg+xml" href="${assets.path(options.icon)}" />`
        }
        ${["kit.css", ...(options.styles ?? [])].map(
          (name) => html`<link rel="stylesheet" href="${assets.path(name)}" />`,
        )}
        ${scripts.length === 0 ? "" : html`<meta name="htmx-config" content="${HTMX_CONFIG}" />`}
        ${scripts.map((name) => html`<script src="${assets.path(name)}"></script>`)} ${refreshTag(refresh)}
      </head>
      <body>
        ${options.body}
      </body>
    </html>`;
}

function refreshTag(refresh: PageOptions["refresh"]): Html | string {
  if (refresh === undefined) return "";
  const target = refresh.url === undefined ? "" : `; url=${refresh.url}`;
  const tag = html`<meta http-equiv="refresh" content="${refresh.seconds}${target}" />`;
  return refresh.unscripted === true ? html`<noscript>${tag}</noscript>` : tag;
}

/**
 * A part of a page as an event stream sends it: htmx puts the content into the element with that id, morphing what
 * is there, so that the focus and a selection stay.
 *
 * @param id ours, not somebody's input
 * @param swap `outerMorph` takes the content for the element itself, which may then have another id. Default: what is in it
 */
export async function livePartial(
  id: string,
  content: Html,
  swap: "innerMorph" | "outerMorph" = "innerMorph",
): Promise<string> {
  // One string, not a template of html: htmx finds these tags by a regular expression that allows no blank in them.
  return `<hx-partial hx-target="#${id}" hx-swap="${swap}">${String(await content)}</hx-partial>`;
}

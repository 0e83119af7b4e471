import type { Assets } from "./assets.ts";
import { html, type HtmlEscapedString } from "./html.ts";

export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

/** Settings of htmx: no style element, because the policy forbids it, and no page snapshots, which are not used. */
const HTMX_CONFIG = JSON.stringify({ includeIndicatorCSS: false, history: false, extensions: "sse" });

export interface PageOptions {
  readonly title: string;
  readonly assets: Assets;
  /** Content of `<body>`. */
  readonly body: Html;
  /** Names of style sheets after `kit.css`. */
  readonly styles?: readonly string[];
  /** Names of scripts that run after htmx and its SSE extension, before the body is read. Undefined: no scripts, no htmx. */
  readonly scripts?: readonly string[];
  /** Name of the svg asset that is the page's icon. */
  readonly icon?: string;
  /**
   * Loads the page again, or another page, for waiting states of pages without scripts. With `unscripted`, only browsers
   * without scripting do so.
   */
  readonly refresh?: { readonly seconds: number; readonly url?: string; readonly unscripted?: boolean };
}

/** Makes an HTML document. The template escapes every value. */
export function page(options: PageOptions): Html {
  const { assets, refresh } = options;
  // Not deferred: a deferred htmx starts by a timer, which may fire before its extension is loaded.
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
 * A part of a page for an event stream. htmx puts the content into the element with the id. It changes only what
 * differs, so that the focus and the selection stay.
 *
 * @param id id of the element. It is not escaped, so it must not come from input
 * @param swap `outerMorph` replaces the element itself, which may then get another id. Default: the content of the element
 */
export async function livePartial(
  id: string,
  content: Html,
  swap: "innerMorph" | "outerMorph" = "innerMorph",
): Promise<string> {
  // One string without line breaks: htmx finds these tags by a regular expression that allows no space between them.
  return `<hx-partial hx-target="#${id}" hx-swap="${swap}">${String(await content)}</hx-partial>`;
}

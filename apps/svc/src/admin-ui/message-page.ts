import type { Identity } from "../identity/principal.ts";
import { html, type Assets, type Html } from "@devplat/web-kit";
import { layout } from "./layout.ts";

/** A page that only says something: not found, not allowed, failed. */
export function messagePage(options: {
  readonly assets: Assets;
  readonly version: string;
  readonly identity?: Identity | undefined;
  readonly title: string;
  readonly text: string;
}): Html {
  const { assets, version, identity, title, text } = options;
  return layout({
    title,
    assets,
    version,
    identity,
    narrow: true,
    content: html`<div class="card stack">
      <h1>${title}</h1>
      <p>${text}</p>
      <p><a href="/admin">To the administration</a></p>
    </div>`,
  });
}

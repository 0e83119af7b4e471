import { html } from "@devplat/web-kit";
import type { Page } from "./layout.ts";

/** A page with a message: not found, not allowed, failed. */
export function messagePage(title: string, text: string): Page {
  return {
    title,
    narrow: true,
    content: html`<div class="card stack">
      <h1>${title}</h1>
      <p>${text}</p>
      <p><a href="/admin">To the administration</a></p>
    </div>`,
  };
}

import { html, type Html } from "@devplat/web-kit";
import { ANNOUNCE_ID } from "../layout.ts";
import { fieldKey, secretUrl } from "./links.ts";

/**
 * A button that makes the daemon put a text on the clipboard of its host. It needs no clipboard of the browser, and no script.
 *
 * @param path the secret
 * @param action of the form: `copy` the value, or `copy-path` on the mount
 * @param label for readers of the screen
 */
export function copyForm(
  path: string,
  { action, field, label }: { readonly action: string; readonly field?: string; readonly label: string },
): Html {
  return html`<form
    method="post"
    action="${secretUrl(path)}"
    hx-post="${secretUrl(path)}"
    hx-target="#${ANNOUNCE_ID}"
  >
    <input type="hidden" name="action" value="${action}" />
    ${field === undefined ? "" : html`<input type="hidden" name="field" value="${fieldKey(field)}" />`}
    <button class="small quiet" type="submit" aria-label="${label}">Copy</button>
  </form>`;
}

import { html, type Html } from "@devplat/web-kit";
import type { FuseStatus } from "../../../../status.ts";
import { mountedPath } from "../mount/mounted-path.ts";
import { copyForm } from "./copy-form.ts";

/** Where a secret is on the filesystem mount; empty while that is off. */
export function mountedPaths(
  fuse: FuseStatus | undefined,
  path: string,
  fields: Iterable<string>,
): Html | "" {
  if (fuse === undefined) return "";
  const file = mountedPath(fuse, path);
  if (file === undefined)
    return html`<p class="hint">It is not on the filesystem mount: no file can have its name.</p>`;
  const ofFields = [...fields].flatMap((field) => {
    const at = mountedPath(fuse, path, field);
    return at === undefined ? [] : [{ field, at }];
  });
  return html`<section class="card stack" aria-label="On the filesystem mount">
    <div class="spread">
      <p>On the filesystem mount: <code class="wrap">${file}</code></p>
      ${copyForm(path, { action: "copy-path", label: "Copy the path of the file" })}
    </div>
    ${fuse.mounted ? "" : html`<p class="hint">Nothing is mounted now. <a href="/ui/">The overview</a> tells more.</p>`}
    ${
      ofFields.length === 0
        ? ""
        : html`<details>
            <summary>Files of the fields</summary>
            <ul class="plain-list">
              ${ofFields.map(
                ({ field, at }) =>
                  html`<li class="spread">
                    <code class="wrap">${at}</code>
                    ${copyForm(path, { action: "copy-path", field, label: `Copy the path of ${field}` })}
                  </li>`,
              )}
            </ul>
          </details>`
    }
  </section>`;
}

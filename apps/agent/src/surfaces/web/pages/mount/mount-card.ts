import { html, type Html } from "@devplat/web-kit";
import { BRAND } from "../../../../brand.ts";
import type { FuseStatus } from "../../../../status.ts";

/** Where the forms of the card lead. */
export const MOUNT_URL = "/ui/mount";
export const UNMOUNT_URL = "/ui/unmount";

/** The filesystem mount with its state; empty while it is off. */
export function mountCard(fuse: FuseStatus | undefined): Html | "" {
  if (fuse === undefined) return "";
  const {
    mountpoint,
    access,
    layout,
    mounted,
    problem = null,
    omitted_names: omitted = 0,
    unsaved = [],
  } = fuse;
  return html`<section class="card stack" aria-labelledby="mount-heading">
    <h2 id="mount-heading">Filesystem mount</h2>
    <dl class="facts">
      <div>
        <dt>Mountpoint</dt>
        <dd><code>${mountpoint}</code></dd>
      </div>
      <div>
        <dt>State</dt>
        <dd>
          <span class="status ${mounted && problem === null ? "good" : "warn"}">${stateText(fuse)}</span>
        </dd>
      </div>
      <div>
        <dt>Access</dt>
        <dd>${access}</dd>
      </div>
      <div>
        <dt>Layout</dt>
        <dd>${layout === "both" ? "JSON files, and a file for each field" : "JSON files"}</dd>
      </div>
      ${omitted === 0 ? "" : leftOut(omitted)}
    </dl>
    ${
      problem === null
        ? ""
        : html`<p class="error">${problem}</p>
            <p class="muted">
              Run <code>${BRAND.command} doctor</code>: it tries everything that the mount needs.
            </p>`
    }
    ${
      unsaved.length === 0
        ? ""
        : html`<p>The store did not take these files. They are in memory, and gone after an unmount:</p>
            <ul>
              ${unsaved.map(({ path, reason }) => html`<li><code>${path}</code>: ${reason}</li>`)}
            </ul>`
    }
    ${mounted ? unmountForm() : mountForm()}
  </section>`;
}

function stateText({ mounted, state }: FuseStatus): string {
  if (mounted) return "mounted";
  switch (state) {
    case "unmounted":
      return "unmounted by request";
    case "starting":
      return "starting";
    case "restarting":
      return "starting again";
    default:
      return "not mounted";
  }
}

function leftOut(count: number): Html {
  return html`<div>
    <dt>Left out</dt>
    <dd>${String(count)} names that no file can have</dd>
  </div>`;
}

function mountForm(): Html {
  return html`<form method="post" action="${MOUNT_URL}">
    <div class="form-actions"><button type="submit">Mount</button></div>
  </form>`;
}

function unmountForm(): Html {
  return html`<form class="stack tight" method="post" action="${UNMOUNT_URL}">
    <label class="check"
      ><input type="checkbox" name="lazy" /> Also while files are open: they go on until they are
      closed</label
    >
    <div class="form-actions"><button type="submit">Unmount</button></div>
  </form>`;
}

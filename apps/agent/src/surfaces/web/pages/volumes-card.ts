import { html, type Html } from "@devplat/web-kit";
import { BRAND } from "../../../brand.ts";
import type { DockerStatus } from "../../../status.ts";

const REFRESH: Readonly<Record<DockerStatus["volumes"][number]["refresh"], string>> = {
  events: "after each change",
  poll: "from time to time",
  probing: "finding out",
};

/** Container volumes with their state; empty while there is nothing to say. */
export function volumesCard(docker: DockerStatus | undefined): Html | "" {
  if (docker === undefined) return "";
  const { enabled, error, registrations, volumes, volume_dir: folder, next_volume_dir: next } = docker;
  const wrong = registrations.filter(({ state }) => state !== "agrees");
  return html`<section class="card flush" aria-labelledby="volumes-heading">
    <div class="card-head"><h2 id="volumes-heading">Container volumes</h2></div>
    ${
      enabled
        ? ""
        : html`<p class="empty">
            <code>docker.enabled</code> is false, but an engine is told to use its socket.
          </p>`
    }
    ${error === null ? "" : html`<p class="error">${error}</p>`}
    ${
      next === null
        ? ""
        : html`<p class="empty">
            Containers have volumes in <code>${folder}</code>. To use <code>${next}</code>, remove them, then
            run <code>${BRAND.command} reload</code>.
          </p>`
    }
    ${wrong.map(
      ({ path, state }) =>
        html`<p class="empty">
          <code>${path}</code> ${state === "absent" ? "does not exist" : state}. Run
          <code>${BRAND.command} docker register</code>.
        </p>`,
    )}
    ${enabled && volumes.length === 0 ? html`<p class="empty">No volumes.</p>` : ""}
    ${volumes.length === 0 ? "" : volumesTable(volumes)}
  </section>`;
}

function volumesTable(volumes: DockerStatus["volumes"]): Html {
  return html`<table class="table" role="table" aria-labelledby="volumes-heading">
    <thead role="rowgroup">
      <tr role="row">
        <th role="columnheader" scope="col">Volume</th>
        <th role="columnheader" scope="col">Secrets</th>
        <th role="columnheader" scope="col">Mounts</th>
        <th role="columnheader" scope="col">Refreshed</th>
        <th role="columnheader" scope="col">Error</th>
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${volumes.map(
        ({ name, paths, secrets, mounts, refresh, error }) =>
          html`<tr role="row">
            <th class="wrap" role="rowheader" scope="row">${name}</th>
            <td class="wrap" role="cell" data-label="Secrets">
              <span
                >${mounts === 0 ? "" : `${secrets} of `}<span class="mono">${paths.join(", ")}</span></span
              >
            </td>
            <td role="cell" data-label="Mounts">${String(mounts)}</td>
            <td role="cell" data-label="Refreshed">${REFRESH[refresh]}</td>
            <td class="wrap" role="cell" data-label="Error">${error ?? "none"}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}

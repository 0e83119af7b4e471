import { html, type Html } from "@devplat/web-kit";
import type { SummedInstance } from "../../administration/instances/instances.ts";
import { formatAgo, formatDuration } from "../common/format.ts";
import { listCard } from "../common/card.ts";
import { dataTable } from "../common/table.ts";

/** Milliseconds without a report after which an instance is shown as silent: three reports are missing. */
const SILENT_MS = 15_000;

/** The instances, whose figures the page adds up, and how old those are. */
export function instanceCard(instances: readonly SummedInstance[], now: number): Html {
  return listCard({
    id: "instances-heading",
    title: "Instances",
    content: dataTable({
      caption: "The instances, and the age of their figures in this page",
      columns: ["Instance", "State", "Started", "Figures"],
      rows: instances.map(
        (each) =>
          html`<tr>
            <th scope="row" class="name">
              ${each.hostName} ${each.isThis ? html`<span class="badge">this one</span>` : ""}
              <div class="small muted">${each.version}</div>
            </th>
            <td data-label="State">${stateOf(each)}</td>
            <td data-label="Started" class="nowrap">${formatAgo(now - each.uptimeMs, now)}</td>
            <td data-label="Figures" class="nowrap">${ageOf(each)}</td>
          </tr>`,
      ),
    }),
  });
}

function stateOf({ ready, reportAgeMs }: SummedInstance): Html {
  if (reportAgeMs > SILENT_MS) {
    return html`<span class="status bad">silent for ${formatDuration(reportAgeMs)}</span>`;
  }
  return ready
    ? html`<span class="status good">ready</span>`
    : html`<span class="status warn">not ready</span>`;
}

/** In whole minutes, because figures are stored once a minute. */
function ageOf({ isThis, isSummed, figuresAgeMs }: SummedInstance): string {
  if (isThis) return "now";
  if (!isSummed) return "not added yet";
  const minutes = Math.floor((figuresAgeMs ?? 0) / 60_000);
  return minutes === 0 ? "under a minute old" : `${minutes} min old`;
}

import { html, type Html } from "@devplat/web-kit";
import type { SummedInstance } from "../../administration/instances/instances.ts";
import { formatAgo, formatDuration } from "../common/format.ts";
import { listCard } from "../common/card.ts";
import { dataTable } from "../common/table.ts";

/** The instances, whose figures the page adds up, and how old those are. */
export function instanceCard(instances: readonly SummedInstance[], now: number): Html {
  return listCard({
    id: "instances-heading",
    title: "Instances",
    content: dataTable({
      caption: "The instances, and the age of their figures in this page",
      columns: ["Instance", "State", "Last seen", "Started", "Figures"],
      rows: instances.map(
        (each) =>
          html`<tr>
            <th scope="row" class="name">
              ${each.address ?? each.hostName} ${each.isThis ? html`<span class="badge">this one</span>` : ""}
              <div class="small muted">${each.hostName}, ${each.version}</div>
            </th>
            <td data-label="State">${stateOf(each)}</td>
            <td data-label="Last seen" class="nowrap">${secondsOrMinutes(each.reportAgeMs)} ago</td>
            <td data-label="Started" class="nowrap">${formatAgo(now - each.uptimeMs, now)}</td>
            <td data-label="Figures" class="nowrap">${ageOf(each)}</td>
          </tr>`,
      ),
    }),
  });
}

function stateOf({ ready, differsIn }: SummedInstance): Html {
  const state = ready
    ? html`<span class="status good">ready</span>`
    : html`<span class="status warn">not ready</span>`;
  if (differsIn.length === 0) return state;
  return html`${state}
    <div class="small"><span class="status warn">another ${differsIn.join(", ")}</span></div>`;
}

function secondsOrMinutes(ms: number): string {
  return ms < 60_000 ? `${Math.floor(ms / 1000)} s` : formatDuration(ms);
}

/** In whole minutes, because figures are stored once a minute. */
function ageOf({ isThis, isSummed, figuresAgeMs }: SummedInstance): string {
  if (isThis) return "now";
  if (!isSummed) return "not added yet";
  const minutes = Math.floor((figuresAgeMs ?? 0) / 60_000);
  return minutes === 0 ? "under a minute old" : `${minutes} min old`;
}

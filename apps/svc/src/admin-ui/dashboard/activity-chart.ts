import { html, type Html } from "@devplat/web-kit";
import { REQUEST_KINDS, type MinuteCounts, type RequestKind } from "../../telemetry/activity.ts";

/** How each kind is called where people read it. */
export const KIND_NAMES: Readonly<Record<RequestKind, string>> = {
  hit: "Hit",
  miss: "Miss",
  passed: "Passed on",
  failed: "Failed or refused",
};

/** Units of the drawing; it is stretched to the width that there is. */
const BAR = { width: 8, step: 10 } as const;
const HEIGHT = 100;
/** Minutes that one row of the table for screen readers sums up. */
const TABLE_MINUTES = 10;

/** Requests of each minute as stacked bars, with the same figures as a table for those who do not see it. */
export function activityChart(minutes: readonly MinuteCounts[]): Html {
  const most = Math.max(1, ...minutes.map(total));
  const sums = sumOf(minutes);
  const spoken = REQUEST_KINDS.map((kind) => `${KIND_NAMES[kind]}: ${sums[kind]}`).join(", ");
  return html`<figure class="chart">
      <svg
        viewBox="0 0 ${minutes.length * BAR.step} ${HEIGHT}"
        preserveAspectRatio="none"
        role="img"
        aria-label="Requests per minute over the last hour. ${spoken}."
      >
        ${minutes.map((counts, index) => bar(counts, index * BAR.step, most))}
      </svg>
      <figcaption>
        <span class="spread small muted"
          ><span>an hour ago</span><span>most in a minute: ${most === 1 && total(sums) === 0 ? 0 : most}</span
          ><span>now</span></span
        >
        <ul class="legend">
          ${REQUEST_KINDS.map(
            (kind) =>
              html`<li>
                <span class="key ${kind}"></span>${KIND_NAMES[kind]} <strong>${sums[kind]}</strong>
              </li>`,
          )}
        </ul>
      </figcaption>
    </figure>
    <div class="visually-hidden">
      <table>
        <caption>
          Requests of the last hour
        </caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            ${REQUEST_KINDS.map((kind) => html`<th scope="col">${KIND_NAMES[kind]}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${parts(minutes).map(
            ({ label, sums: part }) =>
              html`<tr>
                <th scope="row">${label}</th>
                ${REQUEST_KINDS.map((kind) => html`<td>${part[kind]}</td>`)}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}

function bar(counts: MinuteCounts, x: number, most: number): Html {
  let top = HEIGHT;
  const rects = REQUEST_KINDS.flatMap((kind) => {
    const height = round((counts[kind] / most) * HEIGHT);
    if (height === 0) return [];
    top = round(top - height);
    return [html`<rect class="${kind}" x="${x}" y="${top}" width="${BAR.width}" height="${height}"></rect>`];
  });
  return html`${rects}`;
}

function parts(
  minutes: readonly MinuteCounts[],
): readonly { readonly label: string; readonly sums: MinuteCounts }[] {
  return Array.from({ length: Math.ceil(minutes.length / TABLE_MINUTES) }, (_, index) => {
    const from = minutes.length - index * TABLE_MINUTES;
    const label = `${index * TABLE_MINUTES} to ${(index + 1) * TABLE_MINUTES} minutes ago`;
    return { label, sums: sumOf(minutes.slice(Math.max(0, from - TABLE_MINUTES), from)) };
  });
}

function sumOf(minutes: readonly MinuteCounts[]): MinuteCounts {
  const sums: Record<RequestKind, number> = { hit: 0, miss: 0, passed: 0, failed: 0 };
  for (const each of minutes) for (const kind of REQUEST_KINDS) sums[kind] += each[kind];
  return sums;
}

function total(counts: MinuteCounts): number {
  return REQUEST_KINDS.reduce((sum, kind) => sum + counts[kind], 0);
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

import { html, type Html } from "@devplat/web-kit";
import type { SummedInstance } from "../../administration/instances/instances.ts";
import type { MeasuredRepository } from "../../administration/repositories/repositories.ts";
import type { HealthItem } from "../../health.ts";
import type { ActivitySnapshot, RecentDenial, SlowFetch } from "../../telemetry/activity.ts";
import { instanceCard } from "./instance-card.ts";
import { activityChart, KIND_NAMES } from "./activity-chart.ts";
import { cacheFigures } from "../common/cache-figures.ts";
import {
  breakableAddress,
  breakableName,
  formatAgo,
  formatBytes,
  formatDuration,
  formatShare,
  formatTime,
} from "../common/format.ts";
import { factList, listCard } from "../common/card.ts";
import type { Page } from "../common/layout.ts";
import { dataTable } from "../common/table.ts";

/** Repositories that the page names: the busiest. */
const SHOWN_REPOSITORIES = 5;
/** Id of what the live stream replaces. */
export const DASHBOARD_ID = "dashboard";
/** Where the live stream is. */
export const DASHBOARD_STREAM = "/admin/live";

export interface DashboardState {
  /** All instances. Empty: only this one is known. */
  readonly instances: readonly SummedInstance[];
  readonly repositories: readonly MeasuredRepository[];
  readonly activity: ActivitySnapshot;
  readonly health: readonly HealthItem[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The start page: cache, requests, refusals and health. */
export function dashboardPage(state: DashboardState): Page {
  return {
    title: "Dashboard",
    section: "/admin",
    live: DASHBOARD_STREAM,
    lead:
      state.instances.length > 0
        ? html`What ${summedOf(state)} instances did since their starts; the chart and the slowest fetches
          look back an hour. Health and recent denials are of the instance that shows this page.`
        : html`What this instance did since ${formatTime(state.activity.since)}; the chart and the slowest
          fetches look back an hour.`,
    content: html`<div class="stack" id="${DASHBOARD_ID}">${dashboardContent(state)}</div>`,
  };
}

function summedOf({ instances }: DashboardState): number {
  return instances.filter(({ isSummed }) => isSummed).length;
}

/** The part that stays current. */
export function dashboardContent({ instances, repositories, activity, health, now }: DashboardState): Html {
  return html`${cacheFigures(repositories)}
    <section class="card stack" aria-labelledby="health-heading">
      <h2 id="health-heading">Health</h2>
      ${factList([
        ...health.map(
          ({ name, state, detail }) =>
            [name, html`<span class="status ${state} wrap">${detail}</span>`] as const,
        ),
        ["Tokens in use", html`${activity.tokensInUse} <span class="small muted">in the last hour</span>`],
      ])}
    </section>
    <section class="card stack" aria-labelledby="requests-heading">
      <h2 id="requests-heading">Requests</h2>
      ${activityChart(activity.minutes)}
    </section>
    <div class="halves">
      ${listCard({
        id: "slow-heading",
        title: "Slowest fetches",
        content:
          activity.slowest.length === 0
            ? html`<p class="empty">No fetch within the last hour.</p>`
            : slowest(activity.slowest, now),
      })}
      ${listCard({
        id: "denials-heading",
        title: "Recent denials",
        aside: html`<a class="button small" href="/admin/audit?outcome=denied">All</a>`,
        content:
          activity.denials.length === 0
            ? html`<p class="empty">Nothing was refused since the start.</p>`
            : denials(activity.denials, now),
      })}
    </div>
    ${listCard({
      id: "repositories-heading",
      title: "Cached Repositories",
      aside: html`<a class="button small" href="/admin/repositories">Manage</a>`,
      content:
        repositories.length === 0
          ? html`<p class="empty">
              Nothing is cached yet. <a href="/admin/repositories">Add a repository</a>
            </p>`
          : busiest(repositories, now),
    })}
    ${instances.length > 0 ? instanceCard(instances, now) : ""}`;
}

function slowest(fetches: readonly SlowFetch[], now: number): Html {
  const longest = Math.max(1, ...fetches.map(({ durationMs }) => durationMs));
  return dataTable({
    caption: "The slowest fetches of the last hour",
    columns: ["Repository", "Time", "Outcome", "When"],
    rows: fetches.map(
      ({ repository, kind, durationMs, bytes, at }) =>
        html`<tr>
          <th scope="row" class="name">${breakableName(repository)}</th>
          <td data-label="Time" class="nowrap">
            <div>
              ${formatDuration(durationMs)} <span class="small muted">${formatBytes(bytes)}</span>
              <svg class="measure" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                <rect class="${kind}" width="${Math.ceil((100 * durationMs) / longest)}" height="4"></rect>
              </svg>
            </div>
          </td>
          <td data-label="Outcome">${KIND_NAMES[kind]}</td>
          <td data-label="When" class="nowrap">${formatAgo(at, now)}</td>
        </tr>`,
    ),
  });
}

function denials(recent: readonly RecentDenial[], now: number): Html {
  return dataTable({
    caption: "What was refused last",
    columns: ["What", "Who", "When"],
    rows: recent.map(
      ({ event: { action, actor, target, remoteAddress }, at }) =>
        html`<tr>
          <th scope="row" class="name">
            <code>${action}</code>
            <div class="small">${breakableName(target ?? "")}</div>
          </th>
          <td data-label="Who" class="wrap">
            <div>
              ${actor.login ?? actor.kind.replaceAll("_", " ")}
              <div class="small muted mono">${breakableAddress(remoteAddress ?? "")}</div>
            </div>
          </td>
          <td data-label="When" class="nowrap">${formatAgo(at, now)}</td>
        </tr>`,
    ),
  });
}

function busiest(repositories: readonly MeasuredRepository[], now: number): Html {
  const asked = ({ stats }: MeasuredRepository): number => stats.hits + stats.misses;
  const shown = repositories.toSorted((one, other) => asked(other) - asked(one)).slice(0, SHOWN_REPOSITORIES);
  return dataTable({
    caption: "The repositories that are asked for most",
    columns: ["Repository", "Hit rate", "Fetches", "Egress saved", "On disk", "Last fetch"],
    rows: shown.map(
      ({ owner, name, enabled, stats }) =>
        html`<tr>
          <th scope="row" class="name">
            ${breakableName(`${owner}/${name}`)} ${enabled ? "" : html`<span class="badge">disabled</span>`}
            ${stats.lastError === undefined ? "" : html`<div class="error small">${stats.lastError}</div>`}
          </th>
          <td data-label="Hit rate">${formatShare(stats.hits, stats.hits + stats.misses)}</td>
          <td data-label="Fetches">${stats.hits + stats.misses}</td>
          <td data-label="Egress saved" class="nowrap">${formatBytes(stats.bytesSaved)}</td>
          <td data-label="On disk" class="nowrap">${formatBytes(stats.sizeBytes)}</td>
          <td data-label="Last fetch" class="nowrap">${formatAgo(stats.lastFetchAt, now)}</td>
        </tr>`,
    ),
  });
}

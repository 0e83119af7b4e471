import { html, type Html } from "@devplat/web-kit";
import type { CacheStats } from "../../cache/policy.ts";
import type { MeasuredRepository } from "../../administration/repositories/repositories.ts";
import { formatBytes, formatIndexingSaved, formatShare } from "./format.ts";

/** The cache in four figures. */
export function cacheFigures(repositories: readonly MeasuredRepository[]): Html {
  const sum = (pick: (each: CacheStats) => number): number =>
    repositories.reduce((total, { stats }) => total + pick(stats), 0);
  const hits = sum((each) => each.hits);
  const asked = hits + sum((each) => each.misses);
  const active = repositories.filter(({ enabled }) => enabled).length;
  return html`<dl class="figures">
    <div>
      <dt>Active</dt>
      <dd>${active} <span class="small">of ${repositories.length}</span></dd>
    </div>
    <div>
      <dt>Hit rate</dt>
      <dd>${formatShare(hits, asked)} <span class="small">of ${asked}</span></dd>
    </div>
    <div>
      <dt>Egress saved</dt>
      <dd>
        ${formatBytes(sum((each) => each.bytesSaved))}
        <span class="small">${formatIndexingSaved(sum((each) => each.secondsSaved))}</span>
      </dd>
    </div>
    <div>
      <dt>On disk</dt>
      <dd>${formatBytes(sum((each) => each.sizeBytes))}</dd>
    </div>
  </dl>`;
}

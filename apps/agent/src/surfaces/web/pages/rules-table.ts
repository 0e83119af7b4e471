import { html, type Html } from "@devplat/web-kit";
import { BRAND } from "../../../brand.ts";
import type { RuleStatus, RuleView } from "../../../status.ts";
import { dataCell, dataRow, dataTable } from "./data-table.ts";
import { ruleUrl } from "./rule-url.ts";
import { timeText } from "./time-text.ts";

const STATE: Readonly<Record<RuleStatus["state"], { readonly mark: string; readonly word: string }>> = {
  ok: { mark: "good", word: "Up to date" },
  pending: { mark: "idle", word: "Waiting" },
  failed: { mark: "bad", word: "Failed" },
  missing: { mark: "warn", word: "Secret missing" },
  paused: { mark: "idle", word: "Paused" },
};

/** The sync rules with their state. */
export function rulesTable(rules: readonly RuleView[], now: string): Html {
  if (rules.length === 0) {
    return html`<section class="card">
      <h2>Sync rules</h2>
      <p class="empty">
        No rules yet. A rule writes a secret of the store into a file. Add one under <code>rules</code> in the
        configuration. Then <code>${BRAND.command} reload</code> applies it.
      </p>
    </section>`;
  }
  return html`<section class="card flush" aria-labelledby="rules-heading">
    <div class="card-head">
      <h2 id="rules-heading">Sync rules</h2>
      <div class="cluster">${summary(rules)}</div>
    </div>
    ${dataTable(
      "rules",
      "rules-heading",
      ["Rule", "State", "Secret", "Target", "Last synced"],
      rules.map((rule) => row(rule, now)),
    )}
  </section>`;
}

function row(rule: RuleView, now: string): Html {
  const { name, description, key, version, target, last_synced: lastSynced } = rule;
  return dataRow(
    html`<a href="${ruleUrl(name)}">${name}</a>
      ${description === "" ? "" : html`<div class="small muted">${description}</div>`}`,
    [
      dataCell("State", ruleState(rule, now)),
      dataCell(
        "Secret",
        html`<code>${key}</code> ${version === null ? "" : html`<span class="badge">v${version}</span>`}`,
      ),
      dataCell(
        "Target",
        html`<code>${target.path}</code>
          <div class="small muted">${targetFacts(target)}</div>`,
      ),
      dataCell(
        "Last synced",
        lastSynced === null ? html`<span class="muted">never</span>` : timeText(lastSynced, now),
        "nowrap",
      ),
    ],
  );
}

/** Facts about a rule's file, in words. */
export function targetFacts({ format, mode, mounted }: RuleView["target"]): string {
  return mounted ? `${format}, on the mount only` : `${format}, ${mode}`;
}

/** The state of a rule in words, with what is wrong. */
export function ruleState(rule: RuleView, now: string): Html {
  const { mark, word } = STATE[rule.state];
  return html`<span class="status ${mark}">${word}</span>
    ${rule.error === null ? "" : html`<div class="${rule.state === "failed" ? "error" : "small muted"} wrap">${rule.error}</div>`}
    ${retry(rule, now)}`;
}

function retry(rule: RuleView, now: string): Html | string {
  if (rule.state !== "failed" || rule.consecutive_failures === 0) return "";
  const tries =
    rule.consecutive_failures === 1 ? "1 failed try" : `${rule.consecutive_failures} failed tries`;
  const next = rule.next_attempt === null ? "" : html`, next at ${timeText(rule.next_attempt, now)}`;
  return html`<div class="small muted">${tries}${next}</div>`;
}

function summary(rules: readonly RuleView[]): Html[] {
  const badges: Html[] = [];
  for (const [state, { mark, word }] of Object.entries(STATE)) {
    const count = rules.filter((rule) => rule.state === state).length;
    if (count > 0) badges.push(html`<span class="badge ${mark}">${count} ${word.toLowerCase()}</span>`);
  }
  return badges;
}

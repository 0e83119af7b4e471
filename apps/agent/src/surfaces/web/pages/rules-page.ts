import { html, livePartial, type Assets, type Html } from "@devplat/web-kit";
import type { AgentStatus, RuleView } from "../../../status.ts";
import type { NextChange } from "../../../sync/rule-control.ts";
import { sitePage } from "./layout.ts";
import { notices } from "./notices.ts";
import { ruleUrl } from "./rule-url.ts";
import { ruleState, rulesTable, targetFacts } from "./rules-table.ts";
import { secretUrl } from "./secrets/links.ts";
import { timeText } from "./time-text.ts";

/** Ids of the parts that the live stream replaces. */
const RULES_ID = "live-rules";
const RULE_FACTS_ID = "live-rule";

/** `/ui/rules/`: all rules with their state. */
export function rulesPage(assets: Assets, status: AgentStatus, rules: readonly RuleView[]): Html {
  const content = html`${notices(status)}
    <h1>Rules</h1>
    <div id="${RULES_ID}">${rulesTable(rules, status.time)}</div>`;
  return sitePage(assets, status, "Rules", content, { section: "Rules", live: "rules" });
}

/** The part of it that changes, for the live stream. */
export function rulesPartial(status: AgentStatus, rules: readonly RuleView[]): Promise<string> {
  return livePartial(RULES_ID, rulesTable(rules, status.time));
}

/** The part of a rule's page that changes. */
export function rulePartial(status: AgentStatus, rule: RuleView): Promise<string> {
  return livePartial(RULE_FACTS_ID, facts(rule, status.time));
}

export interface RulePageModel {
  readonly rule: RuleView;
  /** Change by the next cycle; undefined if it was not requested. */
  readonly next?: NextChange | undefined;
  readonly announcement?: string | undefined;
  /** Reason why the action failed. */
  readonly refusal?: string;
}

/** `/ui/rules/<name>/`: one rule, what holds it up, and what its next cycle would change. */
export function rulePage(assets: Assets, status: AgentStatus, model: RulePageModel): Html {
  const { rule, next, announcement, refusal } = model;
  const paused = rule.state === "paused";
  const content = html`${refusal === undefined ? "" : html`<p class="banner bad" role="alert">${refusal}</p>`}
    <nav class="crumbs small" aria-label="Sections above"><a href="/ui/rules/">Rules</a></nav>
    <div class="spread">
      <h1 class="wrap">${rule.name}</h1>
      <form class="cluster" method="post" action="${ruleUrl(rule.name)}">
        ${paused ? "" : html`<button class="primary" type="submit" name="action" value="sync">Sync this rule</button>`}
        <a class="button" href="?diff=true">Show next change</a>
        ${
          paused
            ? html`<button type="submit" name="action" value="resume">Resume</button>`
            : html`<button type="submit" name="action" value="pause">Pause</button>`
        }
      </form>
    </div>
    ${rule.description === "" ? "" : html`<p class="muted">${rule.description}</p>`}
    <section class="card" aria-label="State" id="${RULE_FACTS_ID}">${facts(rule, status.time)}</section>
    ${next === undefined ? "" : nextCard(next)}`;
  return sitePage(assets, status, rule.name, content, {
    section: "Rules",
    announcement,
    live: `rule:${rule.name}`,
  });
}

function facts(rule: RuleView, now: string): Html {
  const time = (value: string | null): Html =>
    value === null ? html`<span class="muted">never</span>` : timeText(value, now);
  // Rules with several secrets have no single path to lead to.
  const key = /^[^,\s]+$/.test(rule.key)
    ? html`<a href="${secretUrl(rule.key)}">${rule.key}</a>`
    : html`${rule.key}`;
  return html`<dl class="facts">
    <div class="${rule.error === null ? "" : "wide"}">
      <dt>State</dt>
      <dd>${ruleState(rule, now)}</dd>
    </div>
    <div>
      <dt>Secret</dt>
      <dd>${key} ${rule.version === null ? "" : html`<span class="badge">v${rule.version}</span>`}</dd>
    </div>
    <div>
      <dt>Target</dt>
      <dd>
        <code>${rule.target.path}</code>
        <span class="small muted">${targetFacts(rule.target)}</span>
      </dd>
    </div>
    <div>
      <dt>Last synced</dt>
      <dd>${time(rule.last_synced)}</dd>
    </div>
    <div>
      <dt>Last try</dt>
      <dd>${time(rule.last_attempt)}</dd>
    </div>
    ${rule.run === undefined ? "" : runFact(rule.run, now)}
  </dl>`;
}

/** Result of the rule's command. Its output is never kept. */
function runFact(run: NonNullable<RuleView["run"]>, now: string): Html {
  const end = run.timed_out
    ? "timed out"
    : run.exit_code === null
      ? "could not be run"
      : `exit code ${run.exit_code}`;
  return html`<div>
    <dt>Last command</dt>
    <dd>${end}, ${run.duration_ms} ms, ${timeText(run.at, now)}</dd>
  </div>`;
}

function nextCard(next: NextChange): Html {
  return html`<section class="card stack" aria-labelledby="diff-heading">
    <h2 id="diff-heading">What the next cycle would change</h2>
    ${"problem" in next ? html`<p>Nothing, as it would fail: <span class="error wrap">${next.problem}</span></p>` : diff(next.diff)}
  </section>`;
}

function diff(text: string): Html {
  if (text === "") return html`<p>Nothing.</p>`;
  return html`<p class="hint">Every value is masked.</p>
    <pre class="code" tabindex="0" aria-label="Changes">${text}</pre>`;
}

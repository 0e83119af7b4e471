import { html, type Assets, type Html } from "@devplat/web-kit";
import type { AgentStatus, EnrolmentStatus } from "../../../../status.ts";
import { sitePage } from "../layout.ts";
import { enrolmentCard, enrolmentState, isAsking, type EnrolmentView, type RefusedAnswer } from "./card.ts";
import { ENROLMENTS_PREFIX, enrolmentUrl } from "./links.ts";

/** Id of the list, which the live stream replaces. */
export const ENROLMENT_LIST_ID = "enrolment-list";
/** Without scripting the page of a running enrolment is loaded again after this time, in seconds. */
const REFRESH_SECONDS = 3;

/** `/ui/enrolments/`: all of them, by engine, with their state. */
export function enrolmentsPage(
  assets: Assets,
  status: AgentStatus,
  enrolments: readonly EnrolmentStatus[],
): Html {
  const content = html` <h1>Enrolments</h1>
    <p class="muted">
      Credentials that the daemon gets for you and keeps in the secrets store. Each of its secrets is
      read-only elsewhere.
    </p>
    <section class="card" aria-label="Enrolments" id="${ENROLMENT_LIST_ID}">
      ${enrolmentList(enrolments)}
    </section>`;
  return sitePage(assets, status, "Enrolments", content, { section: "Enrolments", live: "enrolments" });
}

/** The list; an engine is a folder only if it has more than one enrolment. */
export function enrolmentList(enrolments: readonly EnrolmentStatus[]): Html {
  if (enrolments.length === 0) {
    return html`<p class="empty">
      No enrolments yet. Add them under <code>enrolments</code> in the configuration; the daemon takes them up
      by itself.
    </p>`;
  }
  const engines = Map.groupBy(enrolments, ({ engine }) => engine);
  return html`<ul class="tree enrolments">
    ${[...engines].map(([engine, all]) => {
      const [only] = all;
      if (all.length === 1 && only !== undefined) return html`<li>${item(only, engine)}</li>`;
      return html`<li>
        <details open>
          <summary>${engine} <span class="badge">${all.length}</span></summary>
          <ul>
            ${all.map((each) => html`<li>${item(each)}</li>`)}
          </ul>
        </details>
      </li>`;
    })}
  </ul>`;
}

/** @param engine shown where no folder names it */
function item(enrolment: EnrolmentStatus, engine?: string): Html {
  return html`<a class="spread" href="${enrolmentUrl(enrolment)}">
    <span class="wrap"
      >${enrolment.key}
      ${enrolment.description === "" ? "" : html`<span class="small muted">${enrolment.description}</span>`}</span
    >
    <span class="cluster"
      >${engine === undefined ? "" : html`<span class="small muted">${engine}</span>`}
      ${enrolmentState(enrolment)}</span
    >
  </a>`;
}

export interface EnrolmentPageModel {
  readonly view: EnrolmentView;
  /** Reason why the action failed. */
  readonly refusal?: string | undefined;
  readonly refused?: RefusedAnswer | undefined;
}

/** `/ui/enrolments/<engine>/<key>/`: where the enrolment runs. */
export function enrolmentPage(assets: Assets, status: AgentStatus, model: EnrolmentPageModel): Html {
  const { view, refusal, refused } = model;
  const { enrolment } = view;
  const content = html`${refusal === undefined ? "" : html`<p class="banner bad" role="alert">${refusal}</p>`}
    <nav class="crumbs small" aria-label="Sections above">
      <a href="${ENROLMENTS_PREFIX}">Enrolments</a> <span aria-hidden="true">›</span> ${enrolment.engine}
    </nav>
    <h1 class="wrap">${enrolment.key}</h1>
    ${enrolment.description === "" ? "" : html`<p class="muted">${enrolment.description}</p>`}
    <section class="card" aria-label="Enrolment">${enrolmentCard(view, "page", refused)}</section>`;
  const waits = enrolment.state === "running" && !isAsking(view);
  return sitePage(assets, status, enrolment.key, content, {
    section: "Enrolments",
    live: "enrolments",
    ...(waits && { refresh: { seconds: REFRESH_SECONDS, url: enrolmentUrl(enrolment) } }),
  });
}

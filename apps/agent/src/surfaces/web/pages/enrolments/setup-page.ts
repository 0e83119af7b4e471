import { html, page, type Assets, type Html } from "@devplat/web-kit";
import { BRAND } from "../../../../brand.ts";
import type { AgentStatus } from "../../../../status.ts";
import { isOutstanding } from "../../state/setup-state.ts";
import { LIVE_STATE_ID, liveLost, liveNotice, liveState, liveStream } from "../layout.ts";
import { cardId, enrolmentCard, isAsking, type EnrolmentView, type RefusedAnswer } from "./card.ts";

/** Id of the part below the cards, which the live stream replaces. */
export const SETUP_END_ID = "setup-end";
/** Without scripting the wizard is loaded again after this time, in seconds, while something runs. */
const REFRESH_SECONDS = 3;

export interface SetupPageModel {
  /** The enrolments that need the user. */
  readonly views: readonly EnrolmentView[];
  readonly refusal?: string | undefined;
  /** The enrolment whose answer was refused. */
  readonly refused?: { readonly key: string; readonly answer: RefusedAnswer } | undefined;
}

/** `/setup/`: what a new user has to do once, a card for each enrolment. */
export function setupPage(assets: Assets, status: AgentStatus, model: SetupPageModel): Html {
  const { views, refusal, refused } = model;
  const body = html`<a class="skip" href="#content">Skip to the content</a>
    <header class="topbar">
      <span class="brand"
        ><img src="${assets.path("icon.svg")}" alt="" />${BRAND.command}
        <span class="version">${status.version}</span></span
      >
      <div class="actions below" id="${LIVE_STATE_ID}" role="status">${liveState(status)}</div>
    </header>
    <main class="page setup" id="content">
      ${liveLost("/setup/")} ${liveNotice(status)}
      ${refusal === undefined ? "" : html`<p class="banner bad" role="alert">${refusal}</p>`}
      <div class="stack tight">
        <h1>Welcome, ${status.username}</h1>
        <p class="lead">
          Some credentials need you once. The daemon stores them, and keeps your files in step.
        </p>
      </div>
      ${views.map(
        (view) =>
          html`<section class="card stack" aria-labelledby="${headingId(view)}">
            <div class="spread">
              <h2 class="wrap" id="${headingId(view)}">
                ${view.enrolment.description === "" ? view.enrolment.key : view.enrolment.description}
              </h2>
              <span class="small muted">${view.enrolment.engine}</span>
            </div>
            ${enrolmentCard(view, "setup", refused?.key === view.enrolment.key ? refused.answer : undefined)}
          </section>`,
      )}
      <div id="${SETUP_END_ID}">${setupEnd(views)}</div>
    </main>
    ${liveStream("setup")}`;
  const running = views.some(({ enrolment }) => enrolment.state === "running");
  const refresh = running && !views.some(isAsking);
  return page({
    title: `Set up · ${BRAND.command}`,
    assets,
    body,
    icon: "icon.svg",
    styles: ["site.css"],
    scripts: ["live.js"],
    ...(refresh && { refresh: { seconds: REFRESH_SECONDS, url: "/setup/", unscripted: true } }),
  });
}

function headingId({ enrolment }: EnrolmentView): string {
  return `${cardId(enrolment.key, "setup")}-heading`;
}

/** The way to the main site: a plain link when nothing is outstanding, else a button that skips the rest. */
export function setupEnd(views: readonly EnrolmentView[]): Html {
  const left = views.filter(({ enrolment }) => isOutstanding(enrolment)).length;
  if (left === 0)
    return html`<p class="form-actions">
      <a class="button primary" href="/ui/">Continue to the main site</a>
    </p>`;
  return html`<form class="cluster" method="post" action="/setup/complete">
    <button type="submit">Skip the rest</button>
    <span class="small muted"
      >${left} of ${views.length} outstanding. What is skipped waits under Enrolments.</span
    >
  </form>`;
}

import { html, type Html } from "@devplat/web-kit";
import type { FormField } from "../../../../enrol/engine.ts";
import type { EnrolmentPrompt } from "../../../../enrol/dialog.ts";
import type { EnrolmentStatus } from "../../../../status.ts";
import { NEW_REMOTE_URL } from "../remotes/links.ts";
import { secretUrl } from "../secrets/links.ts";
import { AGENT_PAGE } from "../ssh-agent/links.ts";
import { enrolmentUrl } from "./links.ts";

/** An enrolment with the input that it needs from the user. */
export interface EnrolmentView {
  readonly enrolment: EnrolmentStatus;
  readonly prompt: EnrolmentPrompt;
}

/** The page that a card is on; its forms lead back there. */
export type CardPlace = "setup" | "page";

/** Values that were typed and refused. A secret field has only its fault. */
export interface RefusedAnswer {
  readonly faults: ReadonlyMap<string, string>;
  readonly values: ReadonlyMap<string, string>;
}

const MARK: Readonly<Record<EnrolmentStatus["status"], { readonly mark: string; readonly word: string }>> = {
  enrolled: { mark: "good", word: "Enrolled" },
  "in progress": { mark: "warn", word: "In progress" },
  error: { mark: "bad", word: "Error" },
  "not started": { mark: "idle", word: "Not started" },
};

/** The state of an enrolment: a dot, and the same in a word. */
export function enrolmentState({ status, skipped }: EnrolmentStatus): Html {
  const { mark, word } = MARK[status];
  return html`<span class="status ${mark}">${word}</span>
    ${skipped ? html`<span class="badge">skipped</span>` : ""}`;
}

/** Whether the user has something to type: then nothing may be put over it. */
export function isAsking({ enrolment, prompt }: EnrolmentView): boolean {
  return enrolment.state === "running" && prompt.form !== undefined;
}

/**
 * Id of the part of a card that the live stream replaces. A card that waits for input has another one, which no stream
 * knows: it stops refreshing (mission, wizard rule 5).
 */
export function cardId(key: string, place: CardPlace): string {
  return `${place}-${Buffer.from(key).toString("base64url")}`;
}

/**
 * Id of the element that gets the focus after an action on a card: the first field if the card asks for something, which
 * gets the focus, else the card.
 */
export function cardAnchor(view: EnrolmentView, place: CardPlace): string {
  const id = cardId(view.enrolment.key, place);
  return isAsking(view) ? `${id}-field-0` : id;
}

/** State and form of an enrolment, with its actions. */
export function enrolmentCard(view: EnrolmentView, place: CardPlace, refused?: RefusedAnswer): Html {
  const { enrolment } = view;
  const id = cardId(enrolment.key, place);
  return html`<div class="stack" id="${isAsking(view) ? `${id}-asks` : id}">
    <div>${enrolmentState(enrolment)}</div>
    ${enrolment.error === null ? "" : html`<p class="error wrap">${enrolment.error}</p>`}
    ${body(view, place, refused)}
  </div>`;
}

function body(view: EnrolmentView, place: CardPlace, refused: RefusedAnswer | undefined): Html {
  const { enrolment, prompt } = view;
  const button = (action: string, words: string, look = ""): Html =>
    html`<button class="${look}" type="submit" name="action" value="${action}">${words}</button>`;
  const forms = (...buttons: Html[]): Html =>
    html`<form class="form-actions" method="post" action="${enrolmentUrl(enrolment)}">
      ${from(place)} ${buttons}
    </form>`;
  switch (enrolment.state) {
    case "pending":
      return forms(
        button("start", "Start", "primary"),
        ...(enrolment.interactive ? [button("skip", "Skip")] : []),
      );
    case "failed":
      if (prompt.unsaved === true) {
        return html`<p class="hint">
            Not stored yet. The daemon keeps what you entered in memory for 15 minutes, and nowhere else. Try
            again stores it.
          </p>
          ${forms(button("retry", "Try again", "primary"), button("start", "Start over"), button("skip", "Skip"))}`;
      }
      return forms(
        button("start", "Try again", "primary"),
        ...(enrolment.interactive ? [button("skip", "Skip")] : []),
      );
    case "skipped":
      return forms(button("start", "Start after all"));
    case "complete":
      return html`<p class="small">
          Stored as <a class="wrap" href="${secretUrl(enrolment.key)}">${enrolment.key}</a>.
          ${enrolment.interactive ? "" : "The daemon gets it by itself."}
        </p>
        ${enrolment.engine === "ssh" ? useOfKey() : ""}
        ${place === "setup" ? "" : forms(button("start", enrolment.interactive ? "Replace the credential" : "Run now"))}`;
    default:
      if (prompt.form !== undefined) return askForm(view, prompt.form, place, refused);
      return html`${prompt.visit === undefined ? html`<p>Working …</p>` : visit(prompt.visit)}
      ${forms(button("cancel", "Cancel"))}`;
  }
}

/** The next steps with a new SSH key. */
function useOfKey(): Html {
  return html`<p class="small">
    The <a href="${AGENT_PAGE}">SSH agent</a> can offer this key to ssh and git. Hosts that accept its public
    key can be <a href="${NEW_REMOTE_URL}">added as a remote</a>.
  </p>`;
}

/** Only web addresses become links: an engine's address comes from a server. */
function visit({ url, code }: NonNullable<EnrolmentPrompt["visit"]>): Html {
  const parsed = URL.parse(url);
  const isWeb = parsed?.protocol === "https:" || parsed?.protocol === "http:";
  return html`<p>
      ${isWeb ? html`<a class="button primary" href="${url}" rel="noreferrer" target="_blank">Open ${parsed.host}</a>` : html`<code class="wrap">${url}</code>`}
    </p>
    ${code === undefined ? "" : html`<p>Enter this code there: <strong class="usercode mono">${code}</strong></p>`}
    <p class="hint">This page continues by itself when you are done there.</p>`;
}

function askForm(
  { enrolment }: EnrolmentView,
  { title, fields }: NonNullable<EnrolmentPrompt["form"]>,
  place: CardPlace,
  refused: RefusedAnswer | undefined,
): Html {
  return html`<form class="stack" method="post" action="${enrolmentUrl(enrolment)}" autocomplete="off">
    ${from(place)} ${title === "" || title === enrolment.description ? "" : html`<p>${title}</p>`}
    ${fields.some(({ secret }) => secret) ? keptUnder(enrolment.key) : ""}
    ${fields.map((field, at) => fieldInput(field, at, cardId(enrolment.key, place), refused))}
    <div class="form-actions">
      <button class="primary" type="submit" name="action" value="answer">Continue</button>
      <button class="quiet" type="submit" name="action" value="cancel" formnovalidate>Cancel</button>
    </div>
  </form>`;
}

/** The name under which a password manager keeps what is typed. */
function keptUnder(key: string): Html {
  return html`<input type="text" value="${key}" autocomplete="username" readonly hidden />`;
}

/** Names of fields come from a configuration and may be anything: inputs have numbers. */
function fieldInput(field: FormField, at: number, id: string, refused: RefusedAnswer | undefined): Html {
  const { name, help, secret, optional, confirm } = field;
  const fault = refused?.faults.get(name);
  const typeAgain = secret && refused !== undefined && fault === undefined;
  const described = `${id}-about-${at}`;
  const input = (inputName: string, value: string, inputId: string): Html =>
    html`<input
      class="mono"
      id="${inputId}"
      type="${secret ? "password" : "text"}"
      name="${inputName}"
      value="${value}"
      autocomplete="${secret ? "new-password" : "off"}"
      spellcheck="false"
      autocapitalize="off"
      aria-describedby="${described}"
      aria-invalid="${fault === undefined ? "false" : "true"}"
    />`;
  return html`<div class="stack tight">
    <label class="field">
      <span class="label">${name}${optional ? html` <span class="muted">(optional)</span>` : ""}</span>
      ${input(`field.${at}`, secret ? "" : (refused?.values.get(name) ?? ""), `${id}-field-${at}`)}
    </label>
    ${confirm ? html`<label class="field"><span class="label">${name}, again</span>${input(`again.${at}`, "", `${id}-again-${at}`)}</label>` : ""}
    <div id="${described}">
      ${help === "" ? "" : html`<p class="hint">${help}</p>`}
      ${fault === undefined ? "" : html`<p class="error">${fault}</p>`}
      ${typeAgain ? html`<p class="hint">Type it again: a password is never sent back to the page.</p>` : ""}
    </div>
  </div>`;
}

function from(place: CardPlace): Html | string {
  return place === "setup" ? html`<input type="hidden" name="from" value="setup" />` : "";
}

import type { FieldValue } from "@devplat/secret-store";
import { html, type Html } from "@devplat/web-kit";
import { isFormName, textOf, typeOf } from "../../../../secrets/form-text.ts";
import { MAX_FORM_BYTES } from "../../state/form-limit.ts";
import { copyForm } from "./copy-form.ts";
import { fieldKey, partUrl, secretUrl } from "./links.ts";

/** From here on a value is scrolled in its row: what fills about a quarter of a desk's page. */
const LONG_CHARACTERS = 800;
const LONG_LINES = 14;

/** Rows of the text box for a value. */
const MIN_ROWS = 3;
const MAX_ROWS = 20;

/** Context of a row in a secret's table. */
export interface RowContext {
  readonly path: string;
  readonly revealed: boolean;
  readonly editable: boolean;
  /** An old version that is only looked at. */
  readonly old: boolean;
}

/** One field: name, value (hidden at first), actions. Roles are written out because the browser does not see cards on a phone as a table. */
export function fieldRow(name: string, value: FieldValue, context: RowContext): Html {
  const type = typeOf(value);
  return html`<tr role="row">
    <th scope="row" role="rowheader" class="wrap">
      ${shownName(name)} ${type === "string" ? "" : html`<span class="badge">${type}</span>`}
    </th>
    <td role="cell" data-label="Value">
      <div>
        <div class="value">${context.revealed ? shownValue(value) : MASKED}</div>
        ${context.editable && !isFormName(name) ? NOT_EDITABLE : ""}
      </div>
    </td>
    <td role="cell" class="actions">${context.old ? "" : actions(name, context)}</td>
  </tr>`;
}

const NOT_EDITABLE = html`<p class="small muted">
  Not editable here: the name has a line break, or whitespace at an end. The API can change it.
</p>`;
const MASKED = html`<span class="masked">••••••••</span>`;

/** A value in plain sight; the page hides it again after 30 seconds. */
export function shownValue(value: FieldValue): Html {
  const text = textOf(value);
  if (text === "") return html`<span class="muted" data-revealed>empty</span>`;
  // Built without line breaks, which would be shown.
  if (!isLong(text)) return html`<code class="value-text" data-revealed>${text}</code>`;
  return html`<code class="value-text long" tabindex="0" data-revealed>${text}</code>`;
}

/** Whether a value gets a box of its own to scroll in, so that the rows below stay within reach. */
function isLong(text: string): boolean {
  return text.length > LONG_CHARACTERS || text.split("\n").length > LONG_LINES;
}

/** One field with inputs in place of its text. The form returns the version. */
export function editRow(name: string, value: FieldValue, version: number, path: string): Html {
  const text = textOf(value);
  const type = typeOf(value);
  return html`<tr role="row" class="editing">
    <td role="cell" colspan="3">
      <form class="stack" method="post" action="${secretUrl(path)}" ${typedFormAttributes()}>
        <input type="hidden" name="version" value="${version}" />
        <input type="hidden" name="field" value="${fieldKey(name)}" />
        <label class="field"><span class="label">Field</span>${nameInput(name)}</label>
        <label class="field"><span class="label">Value</span>${valueInput(text, "data-focus")}</label>
        ${editHint(type)}
        <div class="form-actions">
          <button class="primary" type="submit" name="action" value="save">Save</button>
          <button type="button" hx-get="${partUrl("row", name)}" hx-target="closest tr" hx-swap="outerHTML">
            Cancel
          </button>
          <button class="danger" type="submit" name="action" value="remove" formnovalidate>
            Remove field
          </button>
        </div>
      </form>
    </td>
  </tr>`;
}

/** Attributes of a form with typed text: the browser keeps none of it, and sends none that the daemon would not read. */
export function typedFormAttributes(): Html {
  return html`autocomplete="off" data-limit="${MAX_FORM_BYTES}"`;
}

export function nameInput(name: string, focus: "data-focus" | "" = ""): Html {
  return html`<input
    class="mono"
    name="name"
    value="${name}"
    required
    spellcheck="false"
    autocapitalize="off"
    ${focus}
  />`;
}

/** An HTML parser drops one line break behind the tag, so one is added. */
export function valueInput(text: string, focus: "data-focus" | "" = ""): Html {
  const rows = Math.min(MAX_ROWS, Math.max(MIN_ROWS, text.split("\n").length + 1));
  return html`<textarea name="text" rows="${rows}" spellcheck="false" autocapitalize="off" ${focus}>
${text}</textarea>`;
}

function editHint(type: ReturnType<typeof typeOf>): Html | string {
  switch (type) {
    case "number":
    case "boolean":
      return html`<p class="hint">
        A ${type} stays one as long as it reads like one; else it becomes text.
      </p>`;
    case "list":
    case "object":
      return html`<p class="hint">This is a structured value. Once edited, it is stored as text.</p>`;
    case "null":
      return html`<p class="hint">The value is null. Once edited, it is stored as text.</p>`;
    default:
      return "";
  }
}

function actions(name: string, { path, revealed, editable }: RowContext): Html {
  const reveal = html`<a
    class="button small quiet"
    href="?reveal=true"
    hx-get="${partUrl("value", name)}"
    hx-target="previous .value"
    aria-label="Reveal ${name}"
    >Reveal</a
  >`;
  const copy = copyForm(path, { action: "copy", field: name, label: `Copy ${name}` });
  return html`${revealed ? "" : reveal} ${copy} ${editable && isFormName(name) ? pencil(name) : ""}`;
}

function pencil(name: string): Html {
  return html`<button
    class="small quiet scripted-only"
    type="button"
    hx-get="${partUrl("edit", name)}"
    hx-target="closest tr"
    hx-swap="outerHTML"
    aria-label="Edit ${name}"
  >
    <span aria-hidden="true">✎</span> Edit
  </button>`;
}

/** Unreadable names get quotes and escapes. */
function shownName(name: string): Html {
  return isFormName(name) && name !== "" ? html`${name}` : html`<code>${JSON.stringify(name)}</code>`;
}

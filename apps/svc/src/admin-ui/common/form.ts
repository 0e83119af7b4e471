import { html, sentence, type Html } from "@devplat/web-kit";
import { FieldError, SvcError } from "../../errors.ts";

/** The typed values of a form and their faults. */
export interface FormState {
  readonly values: Readonly<Record<string, string>>;
  /** By field name. */
  readonly faults: Readonly<Record<string, string>>;
  /** Fault of the form as a unit. */
  readonly message?: string | undefined;
}

export const EMPTY_FORM: FormState = { values: {}, faults: {} };

/**
 * The state of a form that was refused, or undefined if the error is not one about its input.
 *
 * @param fields names of the form's fields; a fault of another field becomes part of the message
 */
export function refusedForm(
  error: unknown,
  values: Readonly<Record<string, string>>,
  fields: readonly string[],
): FormState | undefined {
  if (error instanceof FieldError) {
    const faults: Record<string, string> = {};
    const others: string[] = [];
    for (const { pointer, message } of error.faults) {
      const name = pointer.split("/")[1] ?? "";
      if (fields.includes(name)) faults[name] ??= message;
      else others.push(`${name}: ${message}`);
    }
    return { values, faults, message: others.length === 0 ? undefined : others.join("; ") };
  }
  if (error instanceof SvcError && FORM_ERRORS.includes(error.code)) {
    return { values, faults: {}, message: [error.message, error.hint].filter(Boolean).join(". ") };
  }
  return undefined;
}

/** Errors that the page of the form shows. */
const FORM_ERRORS: readonly string[] = ["already_exists", "cannot_warm", "host_unreachable", "no_app"];

export interface FieldOptions {
  /** Unique in the page. */
  readonly id: string;
  readonly name: string;
  readonly label: string;
  /** Behind the label, in a quiet tone: `(seconds)`. */
  readonly unit?: string;
  readonly hint?: string;
  readonly type?: "text" | "password";
  readonly inputMode?: "numeric";
  readonly required?: boolean;
  readonly placeholder?: string;
  readonly autocomplete?: string;
  /** Takes the focus when the page is loaded. Only one field of a page can. */
  readonly autofocus?: boolean;
  readonly form: FormState;
}

/** A labelled input. A fault is shown with it, and read out with it. */
export function textField(options: FieldOptions): Html {
  const { id, name, label, form } = options;
  const fault = form.faults[name];
  const described = [
    fault === undefined ? "" : `${id}-error`,
    options.hint === undefined ? "" : `${id}-hint`,
  ].filter((part) => part !== "");
  return html`<div class="field">
    <label for="${id}"
      >${label}${options.unit === undefined ? "" : html` <span class="of">${options.unit}</span>`}</label
    >
    <input
      id="${id}"
      name="${name}"
      type="${options.type ?? "text"}"
      value="${form.values[name] ?? ""}"
      autocomplete="${options.autocomplete ?? "off"}"
      autocapitalize="none"
      spellcheck="false"
      ${options.inputMode === undefined ? "" : html`inputmode="${options.inputMode}"`}
      ${options.placeholder === undefined ? "" : html`placeholder="${options.placeholder}"`}
      ${options.required === true ? html`required` : ""}
      ${options.autofocus === true ? html`autofocus` : ""}
      ${fault === undefined ? "" : html`aria-invalid="true"`}
      ${described.length === 0 ? "" : html`aria-describedby="${described.join(" ")}"`}
    />
    ${fault === undefined ? "" : html`<p class="error" id="${id}-error">${sentence(fault)}</p>`}
    ${options.hint === undefined ? "" : html`<p class="hint" id="${id}-hint">${options.hint}</p>`}
  </div>`;
}

/** The result of the action before. The address that leads here ends in `#done`, which gives it the focus. */
export function doneBanner(text: string | undefined): Html | string {
  if (text === undefined) return "";
  return html`<p class="banner good" id="done" tabindex="-1" role="status">${text}</p>`;
}

export interface SelectOptions {
  readonly id: string;
  readonly name: string;
  readonly label: string;
  /** Value and text of each, in order. */
  readonly choices: readonly (readonly [value: string, text: string])[];
  readonly form: FormState;
}

/** A labelled list of choices. The one that was chosen before is chosen, and a fault is shown as with {@link textField}. */
export function selectField({ id, name, label, choices, form }: SelectOptions): Html {
  const chosen = form.values[name] ?? "";
  const fault = form.faults[name];
  return html`<div class="field">
    <label for="${id}">${label}</label>
    <select
      id="${id}"
      name="${name}"
      ${fault === undefined ? "" : html`aria-invalid="true" aria-describedby="${id}-error"`}
    >
      ${choices.map(
        ([value, text]) =>
          html`<option value="${value}" ${value === chosen ? html`selected` : ""}>${text}</option>`,
      )}
    </select>
    ${fault === undefined ? "" : html`<p class="error" id="${id}-error">${sentence(fault)}</p>`}
  </div>`;
}

/** The reason why an action was refused, read out when the page is loaded. */
export function failureBanner(text: string | undefined): Html | string {
  return text === undefined ? "" : html`<p class="banner bad" role="alert">${sentence(text)}</p>`;
}

/** The message about a form as a unit. */
export function formMessage({ message, faults }: FormState): Html | string {
  const isFaulty = Object.keys(faults).length > 0;
  return failureBanner(message ?? (isFaulty ? "Please look at the marked fields." : undefined));
}

/** An optional number field of a form as JSON: empty is null. Input that is not a number stays a string. */
export function numberOrNull(text: string | undefined): number | string | null {
  const trimmed = (text ?? "").trim();
  if (trimmed === "") return null;
  return /^\d{1,15}$/.test(trimmed) ? Number(trimmed) : trimmed;
}

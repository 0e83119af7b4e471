import { html, raw, sentence, type Html } from "@devplat/web-kit";
import { PEER_OFFERS, type PeerOffer } from "../../../../config/sections/peer-offers.ts";
import type { RemoteSetting } from "../../../../remote-settings.ts";
import type { RemoteForm, RemoteFormFaults } from "../../state/remote-form.ts";

const OFFER_WORDS: Readonly<Record<PeerOffer, string>> = {
  token: "borrow a token of the secrets store",
  browse: "open addresses in the browser here",
  notify: "show notifications here",
  clipboard: "put text on the clipboard here",
};

/** A form and its faults. */
export interface SettingsModel {
  readonly form: RemoteForm;
  readonly faults: RemoteFormFaults;
}

/** Inputs for the way to the host. */
export function addressInputs(model: SettingsModel): Html {
  return html`${textInput("port", "Port", model, { hint: "22 if empty.", placeholder: "22", numeric: true })}
  ${textInput("user", "User", model, { hint: "From your ssh configuration if empty." })}`;
}

/** Inputs for jump hosts and the remote socket. */
export function routeInputs(model: SettingsModel): Html {
  return html`${textInput("proxy_jump", "Jump hosts", model, {
    hint: "[user@]host[:port], nearest first, separated by commas. From your ssh configuration if empty; none for no jump host.",
  })}
  ${textInput("remote_socket", "Remote socket", model, {
    hint: "Path on the other host by which its programs reach this daemon. A path below ~/.ssh if empty.",
  })}`;
}

/** Inputs for what the other host may ask for, and for the tokens that it borrows. */
export function lendingInputs(model: SettingsModel): Html {
  const { form } = model;
  return html`<fieldset class="stack tight">
      <legend>The other host may</legend>
      ${PEER_OFFERS.map(
        (offer) =>
          html`<label class="check"
            ><input type="checkbox" name="offer.${offer}" ${checked(form.offers.includes(offer))} />
            ${OFFER_WORDS[offer]}</label
          >`,
      )}
    </fieldset>
    <fieldset class="stack">
      <legend>Tokens that it borrows</legend>
      <div class="fields">
        ${selectInput("ask", "Your consent", model, [
          ["never", "Not needed"],
          ["first", "Once for each connection"],
          ["always", "For each token"],
        ])}
        ${selectInput("lend", "Token", model, [
          ["child", "One of its own"],
          ["own", "The daemon's own token"],
        ])}
        ${textInput("token_ttl", "Lifetime", model, { hint: "A duration such as 1h. 15m if empty.", placeholder: "15m" })}
      </div>
      ${textInput("policies", "Policies", model, { hint: "Separated by commas. Those of the daemon's own token if empty." })}
      <label class="check"
        ><input type="checkbox" name="policies_strict" ${checked(form.strict)} /> Lend nothing if the store
        adds other policies</label
      >
    </fieldset>`;
}

/** The input of a host that is to be added. */
export function hostInput(host: string, faults: RemoteFormFaults): Html {
  return field(
    "host",
    "Host",
    "A name, an address, or a host of your ssh configuration.",
    faults,
    (attributes) => html`<input class="mono" name="host" value="${host}" required ${TYPED} ${attributes} />`,
  );
}

/** Typed names are not words of a language. */
const TYPED = raw('autocomplete="off" spellcheck="false" autocapitalize="off"');

interface TextInputOptions {
  readonly hint: string;
  readonly placeholder?: string;
  readonly numeric?: boolean;
}

function textInput(
  name: keyof RemoteForm["texts"],
  label: string,
  { form, faults }: SettingsModel,
  { hint, placeholder = "", numeric = false }: TextInputOptions,
): Html {
  return field(name, label, hint, faults, (attributes) => {
    const mode = numeric ? raw('inputmode="numeric"') : "";
    const value = form.texts[name];
    return html`<input
      class="mono"
      name="${name}"
      value="${value}"
      placeholder="${placeholder}"
      ${mode}
      ${TYPED}
      ${attributes}
    />`;
  });
}

function selectInput(
  name: "ask" | "lend",
  label: string,
  { form, faults }: SettingsModel,
  options: readonly (readonly [value: string, words: string])[],
): Html {
  return field(
    name,
    label,
    undefined,
    faults,
    (attributes) =>
      html`<select name="${name}" ${attributes}>
        ${options.map(
          ([value, words]) =>
            html`<option value="${value}" ${form.texts[name] === value ? raw("selected") : ""}>
              ${words}
            </option>`,
        )}
      </select>`,
  );
}

function field(
  name: RemoteSetting | "host",
  label: string,
  hint: string | undefined,
  faults: RemoteFormFaults,
  input: (attributes: Html | string) => Html,
): Html {
  return html`<div class="field">
    <label for="${inputId(name)}">${label}</label>
    ${input(html`id="${inputId(name)}" ${hint === undefined && !faults.has(name) ? "" : describedBy(name, { faults })}`)}
    ${about(name, hint, { faults })}
  </div>`;
}

/** The hint of an input, and its fault. */
function about(
  name: RemoteSetting | "host",
  hint: string | undefined,
  { faults }: Pick<SettingsModel, "faults">,
): Html | string {
  const fault = faults.get(name);
  if (hint === undefined && fault === undefined) return "";
  return html`<div id="${inputId(name)}-about">
    ${hint === undefined ? "" : html`<p class="hint">${hint}</p>`}
    ${fault === undefined ? "" : html`<p class="error">${sentence(fault)}</p>`}
  </div>`;
}

function describedBy(name: RemoteSetting | "host", { faults }: Pick<SettingsModel, "faults">): Html {
  return html`aria-describedby="${inputId(name)}-about" aria-invalid="${faults.has(name) ? "true" : "false"}"`;
}

/** Id of the input of a setting; an address of the page can lead to it. */
export function inputId(name: RemoteSetting | "host"): string {
  return `remote-${name.replaceAll("_", "-")}`;
}

function checked(isChecked: boolean): Html | string {
  return isChecked ? raw("checked") : "";
}

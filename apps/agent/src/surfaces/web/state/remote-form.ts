import { PEER_OFFERS } from "../../../config/sections/peer-offers.ts";
import { REMOTE_SETTING_NAMES, type RemoteSetting } from "../../../remote-settings.ts";
import type { RemoteView } from "../../../remote-view.ts";
import { hostFault, remoteSettings } from "../../forwards/file/remote-entry.ts";
import type { RemoteEdit } from "../../forwards/remote-control.ts";

/** Settings that a person types or chooses as one text. An empty text is the default. */
type TextSetting = Exclude<RemoteSetting, "offers" | "policies_strict">;
const TEXTS = REMOTE_SETTING_NAMES.filter(
  (name): name is TextSetting => name !== "offers" && name !== "policies_strict",
);

/** The settings of a remote as the inputs of a form hold them. */
export interface RemoteForm {
  readonly texts: Readonly<Record<TextSetting, string>>;
  readonly offers: readonly string[];
  readonly strict: boolean;
}

/** Faults of typed settings, by the input. */
export type RemoteFormFaults = ReadonlyMap<RemoteSetting | "host", string>;

/** Values of selects that are the default. */
const DEFAULT_TEXTS = { ask: "never", lend: "child" };

/** The form of a remote that is not configured yet. */
export const NEW_REMOTE_FORM: RemoteForm = {
  texts: {
    port: "",
    user: "",
    proxy_jump: "",
    remote_socket: "",
    policies: "",
    token_ttl: "",
    ...DEFAULT_TEXTS,
  },
  offers: PEER_OFFERS,
  strict: false,
};

/** The form with the settings of a remote. */
export function formOf(remote: RemoteView): RemoteForm {
  return {
    texts: {
      port: String(remote.port),
      user: remote.user ?? "",
      proxy_jump: remote.proxy_jump ?? "",
      remote_socket: remote.remote_socket,
      policies: remote.policies?.join(", ") ?? "",
      token_ttl: remote.token_ttl,
      ask: remote.ask,
      lend: remote.lend,
    },
    offers: remote.offers,
    strict: remote.policies_strict,
  };
}

/** The form that a browser has sent. */
export function sentForm(fields: URLSearchParams): RemoteForm {
  const texts = TEXTS.map((name) => [name, (fields.get(name) ?? "").trim()] as const);
  return {
    texts: Object.fromEntries(texts) as Record<TextSetting, string>,
    offers: PEER_OFFERS.filter((offer) => fields.has(`offer.${offer}`)),
    strict: fields.has("policies_strict"),
  };
}

/** A form as one text, for the page to send back. */
export function packForm(form: RemoteForm): string {
  return JSON.stringify(form);
}

/** @returns undefined for a text that {@link packForm} has not made */
export function unpackForm(text: string | null): RemoteForm | undefined {
  try {
    const form = JSON.parse(text ?? "") as RemoteForm;
    const isForm = TEXTS.every((name) => typeof form.texts[name] === "string") && Array.isArray(form.offers);
    return isForm ? form : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The settings of a form that differ from those of another one: a setting that somebody else changes at the same time is
 * kept. Null: the default again.
 */
export function changedSettings(
  form: RemoteForm,
  before: RemoteForm,
): { readonly edit: RemoteEdit; readonly faults: RemoteFormFaults } {
  const changed = settingsOf(form).filter(([name, value]) => {
    const former = settingsOf(before).find(([each]) => each === name)?.[1];
    return JSON.stringify(value) !== JSON.stringify(former);
  });
  const values = changed.filter(([, value]) => value !== null);
  const parsed = remoteSettings.partial().safeParse(Object.fromEntries(values));
  if (!parsed.success) {
    const faults = parsed.error.issues.map(
      ({ path, message }) =>
        [path[0] as RemoteSetting, path[0] === "port" ? "expected a port from 1 to 65535" : message] as const,
    );
    return { edit: {}, faults: new Map(faults.toReversed()) };
  }
  const defaults = changed.filter(([, value]) => value === null);
  return { edit: { ...Object.fromEntries(defaults), ...parsed.data } as RemoteEdit, faults: new Map() };
}

/** Fault of a typed host, by its input. */
export function hostFaults(host: string): RemoteFormFaults {
  const fault = host === "" ? "is missing" : hostFault(host);
  return new Map(fault === undefined ? [] : [["host", fault]]);
}

/** Every setting as the file has it; null is the default. */
function settingsOf({ texts, offers, strict }: RemoteForm): [RemoteSetting, unknown][] {
  const values = TEXTS.map((name): [RemoteSetting, unknown] => [name, settingOf(name, texts[name])]);
  const allOffers = PEER_OFFERS.every((offer) => offers.includes(offer));
  return [...values, ["offers", allOffers ? null : offers], ["policies_strict", strict ? true : null]];
}

function settingOf(name: TextSetting, text: string): unknown {
  if (text === "") return null;
  if (name === "port") return /^\d+$/.test(text) ? Number(text) : text;
  if (name === "policies")
    return text
      .split(",")
      .map((policy) => policy.trim())
      .filter((policy) => policy !== "");
  if (name === "ask" || name === "lend") return text === DEFAULT_TEXTS[name] ? null : text;
  return text;
}

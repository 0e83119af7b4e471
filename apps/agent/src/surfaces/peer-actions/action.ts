import { Secret } from "@devplat/base";
import { MAX_CLIPBOARD_BYTES } from "../../desktop/clipboard.ts";
import {
  MAX_BODY_BYTES,
  MAX_TITLE_BYTES,
  NOTIFICATION_LEVELS,
  withoutControls,
  type Notification,
} from "../../desktop/notification.ts";
import { parseWebUrl } from "../../desktop/web-url.ts";
import type { ActionKind } from "../../config/sections/action-kinds.ts";
import { printForm, type FormFields } from "./form.ts";

/** Something to do on a desktop: here, or on the workstation that forwards its socket to here. Checked already. */
export type PeerAction =
  | { readonly kind: "browse"; readonly url: string }
  | { readonly kind: "notify"; readonly notification: Notification }
  | { readonly kind: "clipboard"; readonly text: Secret };

/** An action, or why it is none: the end of a sentence, which quotes nothing. */
export type Parsed = { readonly action: PeerAction } | { readonly fault: string };

/** Path of the requests for a kind of action. */
export function actionPath(kind: ActionKind): string {
  return `/api/v1/remote/${kind}`;
}

/** The fields of each form; others are left alone, so that a newer program may send more. */
const FIELDS: Readonly<Record<ActionKind, readonly string[]>> = {
  browse: ["url"],
  notify: ["level", "title", "body", "action_url"],
  clipboard: ["text"],
};

/** The mission's rules for what a peer may be asked; the same for a form and for a command line. */
export function parseAction(kind: ActionKind, fields: FormFields): Parsed {
  for (const name of FIELDS[kind]) {
    if (fields.has(name) && fields.get(name) === undefined)
      return { fault: `the ${name} is not valid UTF-8` };
  }
  const field = (name: string): string => fields.get(name) ?? "";
  switch (kind) {
    case "browse":
      return parseBrowse(field("url"));
    case "notify":
      return parseNotify(field("level"), field("title"), field("body"), field("action_url"));
    default:
      return parseClipboard(field("text"));
  }
}

/** The body that asks a peer for it. */
export function actionForm(action: PeerAction): string {
  switch (action.kind) {
    case "browse":
      return printForm({ url: action.url });
    case "notify": {
      const { level, title, body, actionUrl } = action.notification;
      return printForm({
        level,
        title,
        ...(body !== undefined && { body }),
        ...(actionUrl !== undefined && { action_url: actionUrl }),
      });
    }
    default:
      return printForm({ text: action.text.reveal() });
  }
}

/** Facts of an action for the log: a clipboard's length, a notification's level and lengths, the host of an address. */
export function actionFields(action: PeerAction): Record<string, unknown> {
  switch (action.kind) {
    case "browse":
      return { action: "browse", host: new URL(action.url).host };
    case "notify": {
      const { level, title, body, actionUrl } = action.notification;
      const lengths = { title: bytes(title), body: bytes(body ?? ""), action_url: bytes(actionUrl ?? "") };
      return { action: "notify", level, lengths };
    }
    default:
      return { action: "clipboard", length: bytes(action.text.reveal()) };
  }
}

function parseBrowse(text: string): Parsed {
  if (text === "") return { fault: "the URL is missing" };
  const parsed = parseWebUrl(text);
  return "fault" in parsed
    ? { fault: `the URL ${parsed.fault}` }
    : { action: { kind: "browse", url: parsed.url } };
}

function parseNotify(levelText: string, title: string, body: string, actionUrl: string): Parsed {
  const level = NOTIFICATION_LEVELS.find((each) => each === levelText);
  if (level === undefined) return { fault: `the level must be one of: ${NOTIFICATION_LEVELS.join(", ")}` };
  if (!title.isWellFormed() || !body.isWellFormed()) return { fault: "the text is not valid UTF-8" };
  if (withoutControls(title) === "") return { fault: "the title must not be empty" };
  if (bytes(title) > MAX_TITLE_BYTES) return { fault: "the title is longer than 1 KiB" };
  if (bytes(body) > MAX_BODY_BYTES) return { fault: "the body is longer than 8 KiB" };
  const notification = { level, title, ...(body !== "" && { body }) };
  if (actionUrl === "") return { action: { kind: "notify", notification } };
  const parsed = parseWebUrl(actionUrl);
  return "fault" in parsed
    ? { fault: `the action URL ${parsed.fault}` }
    : { action: { kind: "notify", notification: { ...notification, actionUrl: parsed.url } } };
}

function parseClipboard(text: string): Parsed {
  if (text === "") return { fault: "the text must not be empty" };
  if (text.includes("\0")) return { fault: "the text holds a NUL character" };
  if (!text.isWellFormed()) return { fault: "the text is not valid UTF-8" };
  if (bytes(text) > MAX_CLIPBOARD_BYTES) return { fault: "the text is longer than 64 KiB" };
  return { action: { kind: "clipboard", text: new Secret(text) } };
}

function bytes(text: string): number {
  return Buffer.byteLength(text);
}

import { xmlText } from "@devplat/base/xml-text";

/** Urgency of a notification; the first value is the mildest. */
export const NOTIFICATION_LEVELS = ["info", "warning", "error", "attention"] as const;
export type NotificationLevel = (typeof NOTIFICATION_LEVELS)[number];

/** Longest title and body, in bytes: desktops show less, and one argument of a program holds it (128 KiB on Linux). */
export const MAX_TITLE_BYTES = 1024;
export const MAX_BODY_BYTES = 8 * 1024;

export interface Notification {
  readonly level: NotificationLevel;
  readonly title: string;
  readonly body?: string;
  /** An address that `parseWebUrl` has taken. */
  readonly actionUrl?: string;
}

/** A title for a place that shows plain text, where markup may be read all the same. */
export function titleText(text: string): string {
  // The specification has no markup here, so that entities would be shown as they are: letters that look alike.
  return withoutControls(text).replaceAll("<", "‹").replaceAll(">", "›").replaceAll("&", "＆");
}

/** A body for a place that reads markup (Desktop Notifications Specification 1.2, "Markup"). */
export function bodyMarkup(text: string): string {
  return xmlText(withoutControls(text));
}

/**
 * Text without control characters, and without those that turn the direction of writing, with which a text can look
 * like another one. Line breaks and tabs become a blank, so that words stay apart.
 */
export function withoutControls(text: string): string {
  return text
    .replaceAll(/[\t-\r\u0085\u2028\u2029]+/g, " ")
    .replaceAll(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "")
    .trim();
}

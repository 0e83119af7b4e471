import { titleText, type Notification } from "../../../desktop/notification.ts";
import type { Question } from "./question.ts";

/** Longest text of one line of a prompt, in characters. A longer line would push the others out of the window. */
const MAX_LINE_CHARS = 200;
/** Maximum number of facts in a prompt. */
const MAX_FACTS = 8;

/**
 * The text that an SSH_ASKPASS program shows. Each fact is on a line of its own that begins with whether the daemon has checked
 * it. No text of a client can begin a line, and programs that read markup find none.
 */
export function promptText(question: Question): string {
  const { kind, comment, fingerprint, facts } = question;
  const key = `"${line(comment).replaceAll('"', "'")}" (${line(fingerprint)})`;
  const stated = facts
    .slice(0, MAX_FACTS)
    .map(({ text, verified }) => `${verified ? "verified" : "claimed"}: ${line(text)}`);
  if (kind === "confirm") return [`Allow the use of the SSH key ${key}?`, ...stated].join("\n");
  return [...stated, `Enter passphrase for the SSH key ${key}: `].join("\n");
}

/** The notification that points to the page. @param url of the web UI, without a final slash; undefined without one */
export function questionNotification(
  { kind, comment }: Question,
  url: string | undefined,
): Pick<Notification, "level" | "title" | "body" | "actionUrl"> {
  const wish = kind === "confirm" ? "Confirm the use of an SSH key" : "An SSH key needs its passphrase";
  return {
    level: "attention",
    title: wish,
    body: line(comment),
    ...(url !== undefined && { actionUrl: `${url}/ui/agent/` }),
  };
}

/** Text from elsewhere as one line without control characters and markup. */
function line(text: string): string {
  const shown = titleText(text);
  return shown.length <= MAX_LINE_CHARS ? shown : `${shown.slice(0, MAX_LINE_CHARS)}…`;
}

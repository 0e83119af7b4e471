import { html, type Html } from "@devplat/web-kit";

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/**
 * A time in the zone of this host, which is the user's own: `09:54:07`, with `20 Nov` before it if not of the same
 * day as `now`, and with the year if not of the same year. Both are ISO 8601.
 */
export function timeText(time: string, now: string): Html {
  return html`<time datetime="${time}">${localTime(new Date(time), new Date(now))}</time>`;
}

function localTime(time: Date, now: Date): string {
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map(twoDigits).join(":");
  const day = `${time.getDate()} ${MONTHS[time.getMonth()]}`;
  if (time.getFullYear() !== now.getFullYear()) return `${day} ${time.getFullYear()}, ${clock}`;
  return time.toDateString() === now.toDateString() ? clock : `${day}, ${clock}`;
}

function twoDigits(number: number): string {
  return String(number).padStart(2, "0");
}

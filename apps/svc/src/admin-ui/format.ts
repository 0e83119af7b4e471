import { html, type Html } from "@devplat/web-kit";

const UNITS = ["B", "KB", "MB", "GB", "TB"] as const;

/** Bytes for people, in steps of 1024, the step that the size limit counts in: `12.3 MB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** A length of time for people: `850 ms`, `12.3 s`, `4 min`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.round(ms / 60_000)} min`;
}

/** `owner/name`, which may break behind the slash. */
export function breakableName(name: string): Html {
  const [first = "", ...rest] = name.split("/");
  return html`${first}${rest.map((part) => html`/<wbr />${part}`)}`;
}

/** How long ago, for people; undefined: `never`. */
export function formatAgo(then: number | undefined, now: number): string {
  if (then === undefined) return "never";
  const seconds = Math.max(0, Math.round((now - then) / 1000));
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

/** `2026-01-31 12:00 UTC` */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** `75 %`, or a dash where nothing was counted yet. */
export function formatShare(part: number, whole: number): string {
  return whole === 0 ? "–" : `${Math.round((100 * part) / whole)} %`;
}

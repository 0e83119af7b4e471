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

/** CPU time that seeds saved clients, for people: `and 4 min of CPU`. Empty: none. */
export function formatIndexingSaved(seconds: number): string {
  return seconds === 0 ? "" : `and ${formatDuration(seconds * 1000)} of CPU`;
}

/** `owner/name`, which may break behind the slash. */
export function breakableName(name: string): Html {
  const [first = "", ...rest] = name.split("/");
  return html`${first}${rest.map((part) => html`/<wbr />${part}`)}`;
}

/** An IPv6 address breaks only at its colons. */
export function breakableAddress(address: string): Html {
  const groups = address.split(":");
  return html`${groups.map((group, index) => (index === 0 ? group : html`:<wbr />${group}`))}`;
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

/** `2026-01-31 12:00:00`, in UTC as its column says: for lists where the order matters, and room is scarce. */
export function formatInstant(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace("T", " ");
}

/** Names in user agents, the more specific first: a browser also names those below it. */
const BROWSERS = [
  ["Edge", /\bEdg\/(\d+)/],
  ["Opera", /\bOPR\/(\d+)/],
  ["Firefox", /\bFirefox\/(\d+)/],
  ["Chrome", /\b(?:Headless)?Chrome\/(\d+)/],
  ["Safari", /\bVersion\/(\d+)\S* .*Safari\//],
] as const;
const SYSTEMS = [
  ["iPhone", /iPhone/],
  ["iPad", /iPad/],
  ["Android", /Android/],
  ["Windows", /Windows/],
  ["macOS", /Mac OS X|Macintosh/],
  ["ChromeOS", /CrOS/],
  ["Linux", /Linux/],
] as const;

/** A `User-Agent` for people: `Firefox 140 on Linux`. That of a program is unchanged. */
export function formatProgram(userAgent: string | undefined): string {
  if (userAgent === undefined || userAgent === "") return "unknown";
  if (!userAgent.startsWith("Mozilla/")) return userAgent;
  for (const [name, form] of BROWSERS) {
    const version = form.exec(userAgent)?.[1];
    if (version === undefined) continue;
    const system = SYSTEMS.find(([, part]) => part.test(userAgent))?.[0];
    return system === undefined ? `${name} ${version}` : `${name} ${version} on ${system}`;
  }
  return userAgent;
}

/** `75 %`, or a dash where nothing was counted yet. */
export function formatShare(part: number, whole: number): string {
  return whole === 0 ? "–" : `${Math.round((100 * part) / whole)} %`;
}

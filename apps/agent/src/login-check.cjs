"use strict";
// `agent login-check` stands in the start-up files of shells, and nearly always ends after one look at the suppression
// marker. So it starts here, where nothing is loaded that this look does not need: no import, no TypeScript.

const fs = process.getBuiltinModule("node:fs");
const path = process.getBuiltinModule("node:path");

/** Same as BRAND.folder; brand.ts would have to be loaded. A test holds them together. */
const FOLDER = "daemon";
const DEFAULT_HOURS = 6;
const HOUR_MS = 3_600_000;
/** Options after which the marker alone decides. Anything else is for the command line's parser. */
const KNOWN = new Set(["login-check", "--no-passwd", "--quiet"]);

/** `AGENT_SUPPRESS_HOURS` as a number of hours; undefined if it is no whole number above zero. */
function suppressHours(environment) {
  const text = environment.AGENT_SUPPRESS_HOURS;
  if (text === undefined || text === "") return DEFAULT_HOURS;
  return /^[0-9]{1,6}$/.test(text) && Number(text) > 0 ? Number(text) : undefined;
}

/** The marker's path: an empty or relative `XDG_STATE_HOME` counts as unset, as its specification says. */
function markerPath(environment) {
  if (environment.AGENT_SUPPRESS_MARKER) return environment.AGENT_SUPPRESS_MARKER;
  const { XDG_STATE_HOME: state, HOME: home } = environment;
  const base =
    state && path.isAbsolute(state)
      ? state
      : path.join(home || process.getBuiltinModule("node:os").homedir(), ".local/state");
  return path.join(base, FOLDER, "login-check-suppress");
}

/** Whether the marker is younger than `hours`. One from the future is stale: a clock was wrong. */
function isSuppressed(marker, hours, now) {
  const found = fs.statSync(marker, { throwIfNoEntry: false });
  if (found === undefined) return false;
  const age = now - found.mtimeMs;
  return age >= 0 && age < hours * HOUR_MS;
}

/** Exit code if the marker decides, undefined if the whole command has to run. */
function quickAnswer(args, environment, now) {
  if (!args.every((arg) => KNOWN.has(arg))) return undefined;
  const hours = suppressHours(environment);
  if (hours === undefined) return undefined;
  try {
    return isSuppressed(markerPath(environment), hours, now) ? 0 : undefined;
  } catch {
    return undefined;
  }
}

module.exports = { suppressHours, markerPath, isSuppressed, FOLDER };

if (require.main === module) {
  const code = quickAnswer(process.argv.slice(2), process.env, Date.now());
  // Leaves without the work that an empty event loop would still do.
  if (code !== undefined) process.exit(code);
  void import("./main.ts");
}

"use strict";
// The suppression marker of `agent login-check`. Loaded at every start of a shell: no import, no TypeScript.

const fs = process.getBuiltinModule("node:fs");
const path = process.getBuiltinModule("node:path");

/** Same as BRAND.folder; brand.ts would have to be loaded. A test holds them together. */
const FOLDER = "daemon";
const DEFAULT_HOURS = 6;
const HOUR_MS = 3_600_000;
/** `AGENT_SUPPRESS_HOURS` as a number of hours; undefined if it is not a whole number above zero. */
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

module.exports = { suppressHours, markerPath, isSuppressed, FOLDER };

"use strict";
// Start-up files of shells call `agent login-check`. It nearly always ends after one look at the suppression
// marker. So it starts here, where nothing is loaded that this look does not need: no import, no TypeScript.

const { suppressHours, markerPath, isSuppressed } = require("./suppression.cjs");

/** Words after which the marker alone decides. Anything else is for the command line's parser. */
const KNOWN = new Set(["login-check", "--no-passwd", "--quiet"]);

/** Exit code if the marker decides, undefined if the whole command has to run. */
function quickAnswer(args, environment, now) {
  if (args[0] !== "login-check" || !args.every((arg) => KNOWN.has(arg))) return undefined;
  const hours = suppressHours(environment);
  if (hours === undefined) return undefined;
  try {
    return isSuppressed(markerPath(environment), hours, now) ? 0 : undefined;
  } catch {
    return undefined;
  }
}

const code = quickAnswer(process.argv.slice(2), process.env, Date.now());
// Leaves without the work that an empty event loop would still do.
if (code !== undefined) process.exit(code);
void import("./main.ts");
